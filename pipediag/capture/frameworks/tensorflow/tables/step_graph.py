"""The graph of a traced step, with the graphs of the functions that it calls unfolded into it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pipediag.capture.runtime import UnreadableStepError

_MOST_OPERATIONS = 200_000
"""Own choice: reading more of them would stop the script for seconds."""

_CALLS = ("PartitionedCall", "StatefulPartitionedCall")
_BRANCHES = ("If", "StatelessIf", "Case", "StatelessCase")
_FUNCTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(_CALLS, ("f",)),
    **dict.fromkeys(("If", "StatelessIf"), ("then_branch", "else_branch")),
    **dict.fromkeys(("Case", "StatelessCase"), ("branches",)),
    **dict.fromkeys(("While", "StatelessWhile"), ("body",)),
}
"""Operations that call functions, with the attributes that name these."""
_COMPILED = "_XlaMustCompile"
"""The attribute by which TensorFlow marks what XLA is to compile."""
_IN_GRADIENTS = ("gradient_tape/", "gradients/")
"""Scopes in which TensorFlow computes gradients."""

Key = tuple[int, str, int]
"""Identity of a tensor in a step: the number of its frame, its operation, its place there."""


@dataclass(eq=False)
class Frame:
    """One call of one function."""

    index: int
    graph: Any
    caller: Frame | None = None
    call: Any = None
    """The operation that calls it."""
    given: Sequence[Any] = ()
    """Expression that the call passes for each input."""
    positions: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        inputs = enumerate(self.graph.inputs)
        self.positions = {tensor.op.name: place for place, tensor in inputs}

    def given_for(self, op: Any) -> Any:
        """Return what the call passes for an input; None for all that no call passes."""
        place = self.positions.get(op.name) if op.type == "Placeholder" else None
        return self.given[place] if place is not None and place < len(self.given) else None

    @property
    def branch(self) -> Frame | None:
        """Return the body of the loop or branch that it is in; None where each step runs it
        once."""
        if self.caller is None:
            return None
        return self.caller.branch if self.call.type in _CALLS else self


class At(NamedTuple):
    """A tensor in one call of a function."""

    frame: Frame
    tensor: Any

    @property
    def key(self) -> Key:
        return self.frame.index, self.tensor.op.name, self.tensor.value_index

    @property
    def op(self) -> Any:
        return self.tensor.op

    def inputs(self) -> list[At]:
        return [At(self.frame, tensor) for tensor in self.tensor.op.inputs]


class StepGraph:
    """Every operation that a call of a concrete function may run, each with the call it is in.

    Raises:
        UnreadableStepError: a called function can't be found, or the graph is too large.
    """

    def __init__(self, concrete: Any) -> None:
        graph = concrete.graph
        self.root = Frame(0, graph)
        self.compiled = bool(concrete.function_def.attr[_COMPILED].b)
        """True if XLA compiles it, or a function in it."""
        self.frames = [self.root]
        self.operations: list[tuple[Frame, Any]] = []
        self._called: dict[tuple[int, str], list[Frame]] = {}
        self._captured = {internal.op.name: external for external, internal in graph.captures}
        self._unfold(self.root)

    def source(self, at: At) -> At:
        """Return where a tensor is made, across the borders of functions."""
        while True:
            frame, op = at.frame, at.op
            given = frame.given_for(op)
            if given is not None and frame.caller is not None:
                at = At(frame.caller, given)
            elif op.type in _CALLS:
                (callee,) = self._called[frame.index, op.name]
                at = At(callee, callee.graph.outputs[at.tensor.value_index])
            else:
                return at

    def upwards(
        self, starts: Iterable[At], goes_on: Callable[[At], bool] = lambda _: True
    ) -> Iterator[At]:
        """Yield the tensors that these are computed from, themselves included and each once; what
        lies behind one, where it `goes_on`."""
        seen: set[Key] = set()
        waiting = [self.source(one) for one in starts]
        while waiting:
            at = waiting.pop()
            if at.key not in seen:
                seen.add(at.key)
                yield at
                if goes_on(at):
                    waiting.extend(self.source(one) for one in at.inputs())

    def behind(self, at: At, kinds: Container[str]) -> At:
        """Return what a tensor is made from, through operations of these kinds."""
        at = self.source(at)
        while at.op.type in kinds:
            at = self.source(at.inputs()[0])
        return at

    def captured(self, at: At) -> Any:
        """Return the captured handle or constant behind a tensor; None for all else."""
        made = self.source(at)
        return self._captured.get(made.op.name) if made.frame is self.root else None

    def handles(self) -> dict[int, Any]:
        """Return all captured handles by id: the graph need not list a variable whose handle is
        used by itself."""
        captured = self._captured.values()
        return {id(one): one for one in captured if one.dtype.name == "resource"}

    def _unfold(self, frame: Frame) -> None:
        for op in frame.graph.get_operations():
            self.operations.append((frame, op))
            if len(self.operations) > _MOST_OPERATIONS:
                raise UnreadableStepError(
                    f"The graph of the step has more than {_MOST_OPERATIONS} operations."
                )
            if op.type in _FUNCTIONS:
                self.compiled |= _COMPILED in op.node_def.attr and bool(op.get_attr(_COMPILED))
                values = [op.get_attr(attribute) for attribute in _FUNCTIONS[op.type]]
                functions = [f for one in values for f in (one if isinstance(one, list) else [one])]
                callees = [self._enter(frame, op, one.name) for one in functions]
                self._called[frame.index, op.name] = callees

    def _enter(self, frame: Frame, op: Any, name: str) -> Frame:
        graph = _graph_of(frame, name)
        given = op.inputs[1:] if op.type in _BRANCHES else op.inputs
        callee = Frame(len(self.frames), graph, frame, op, list(given))
        self.frames.append(callee)
        self._unfold(callee)
        return callee


def calls_functions(op: Any) -> bool:
    """Return True if another graph does the operation's work."""
    return op.type in _FUNCTIONS


def in_gradients(op: Any) -> bool:
    """Return True if the operation computes a gradient."""
    return any(scope in op.name for scope in _IN_GRADIENTS)


def arguments_of(graph: Any) -> list[Any]:
    """Return a graph's inputs without captures and without what replicas pass at each call."""
    captured = len(graph.captures) + len(getattr(graph, "deferred_external_captures", ()))
    return list(graph.inputs[: len(graph.inputs) - captured])


def of_all_devices(variable: Any) -> Any:
    """Return the variable of a strategy that this one is a copy of; otherwise the variable."""
    # Which of the two TensorFlow uses depends on its version.
    at_handle = getattr(variable.handle, "_distributed_container", None)
    container = at_handle or getattr(variable, "_distributed_container", None)
    return variable if container is None else container() or variable


def _graph_of(frame: Frame | None, name: str) -> Any:
    while frame is not None:
        function = frame.graph._get_function(name)
        if function is not None:
            return function.graph
        frame = frame.caller
    raise UnreadableStepError(f"The step calls `{name}`, whose graph TensorFlow does not show.")
