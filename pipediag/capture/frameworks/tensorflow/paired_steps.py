"""Training steps that a loop makes eagerly, some of which are made once more as a `tf.function`.

Both are timed, from the same values of the variables and on the same batch, where the script makes
the step; the values after the script's own step stay.
"""

from __future__ import annotations

import ast
import linecache
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

from pipediag.capture.callsites import frames, is_users, locals_of
from pipediag.capture.guard import Guard, caller_of_hook
from pipediag.capture.loops.loop import Stage
from pipediag.capture.loops.registry import rounds_around
from pipediag.capture.pipelines.functions import operations_of, why_not_traced, why_not_twice
from pipediag.capture.pipelines.values import value_of
from pipediag.capture.process import let_pass
from pipediag.capture.replay import first_line
from pipediag.capture.watching.step_clock import StepClock
from pipediag.session.recorded_loops import GraphStep
from pipediag.step_source import NotAFunctionError, StepSource, step_at

_SEEN = 5
"""Steps before the first that is made twice: the first ones make variables and fill caches."""
_PAIRS = 8
_MOST_BYTES = 512 * 1024 * 1024
"""Size of the variables, of which up to three copies are held for the length of a step."""
_MOST_COMPARED = 1_000
"""Own choice: steps whose batches' shapes are counted, some microseconds each."""
_LONGEST_TRACING_S = 20.0
"""Own choice: time for the traces of several shapes, after which no more pairs are made."""
_FURTHEST = 0.02
"""Largest distance between the changes of all variables, as a part of their length: Adam divides by
gradients, so that rounding shows where these are almost zero."""
_LONGEST = 160
_WHAT = "timing a step as a `tf.function`"

_Shape = tuple[int | None, ...]


@dataclass
class _Step:
    """One `with GradientTape()` of the script."""

    record: GraphStep
    source: StepSource | None = None
    seen: int = 0
    elements: Any = None
    """Specs of the elements of the dataset that the loop goes through; None without one."""
    shapes: Counter[tuple[_Shape, ...]] = field(default_factory=Counter)
    """Numbers of steps by the shapes of the tensors that they were given."""
    function: Any = None
    tracing_ms: float = 0.0
    """Time of all traces so far, their first calls included."""
    variables: Sequence[Any] = ()
    takes_any: bool = False
    """True if one trace serves batches of any shape that may come."""
    is_over: bool = False
    """True once all pairs were made, or none will be."""
    is_warm: bool = False
    """True once it was made twice: the first time, its copies take memory from the system."""
    draws: bool = False
    """True if the step draws random numbers, so that no two results are the same."""


class _Pair(NamedTuple):
    """A step that is to be made twice, while its tape is open."""

    step: _Step
    frame: FrameType
    arguments: tuple[Any, ...]
    before: list[Any]
    """Values of the variables before it."""
    began_ns: int


class PairedSteps:
    """Follows tapes that are opened in a loop's own body, up to where gradients are applied."""

    def __init__(self, clock: StepClock) -> None:
        self._clock = clock
        self._steps: dict[tuple[CodeType, int], _Step] = {}
        self._open: _Pair | None = None

    def install_tape(self, module: Any, guard: Guard) -> None:
        guard.tell_before(module.GradientTape, "__enter__", _WHAT, self._opened)

    def install_optimizer(self, name: str, guard: Guard, module: Any) -> None:
        """Watch the end of each update by the module's class of optimizers: those of Keras 2 lack
        `apply`, and those of Keras 3 `minimize`."""
        owner, applied = getattr(module, name), guard.entry(_WHAT, self._applied)
        for method in ("apply_gradients", "apply", "minimize"):
            if hasattr(owner, method):
                guard.replace(owner, method, _followed(getattr(owner, method), applied, guard))

    def _opened(self, _: Any) -> None:
        frame = caller_of_hook(__file__)
        context = sys.modules["tensorflow.python.eager.context"]
        if not is_users(frame.f_code.co_filename) or not context.executing_eagerly():
            return
        last = self._clock.last_here
        place = (frame.f_code, frame.f_lineno)
        step = self._steps.get(place)
        if step is None:
            if last is None or last.loop.record.kind != "eager":
                return
            loop = last.loop.record
            step = self._steps[place] = _described(frame)
            if loop.graph_step is not None:
                loop.graph_step.lacking = step.record.lacking = "A step opens several tapes."
            else:
                loop.graph_step = step.record
        step.seen += 1
        compares = not step.takes_any and step.seen <= _MOST_COMPARED
        over = step.is_over and not compares
        # Batches of a trial tell nothing: the script would not have had them.
        own_batch = last is not None and last.stage is Stage.OWN
        if step.record.lacking is not None or over or not own_batch:
            return
        try:
            given = _given(step, frame)
            if compares:
                step.shapes[tuple(tuple(one.shape) for one in _tensors(given.values()))] += 1
                step.record.shapes = len(step.shapes)
                step.record.traces = expected_kinds(step.shapes.values())
            if not step.is_over and step.seen > _SEEN:
                self._begin(step, frame, given)
        except Exception as error:
            let_pass(error)
            self._give_up(step, f"It could not be prepared: {type(error).__name__}.")

    def _begin(self, step: _Step, frame: FrameType, given: Mapping[str, Any]) -> None:
        lacking = _unfit(given)
        if lacking is not None:
            self._give_up(step, lacking)
            return
        last = self._clock.last_here
        step.elements = last and last.element_spec
        before, began_ns = [], time.monotonic_ns()
        if step.function is not None:
            before = _copies(step.variables)
            _wait_for(step.variables)
            self._clock.interrupted_by_us(began_ns, time.monotonic_ns())
        arguments = tuple(given.values())
        self._open = _Pair(step, frame, arguments, before, time.monotonic_ns())

    def _applied(self) -> None:
        pair = self._open
        if pair is None or caller_of_hook(__file__) is not pair.frame:
            return
        applied_ns, step = time.monotonic_ns(), pair.step
        self._open = None
        try:
            if step.function is None:
                lacking = _prepare(step, pair.frame, pair.arguments)
            else:
                _wait_for(step.variables)
                own_ns = time.monotonic_ns() - pair.began_ns
                lacking = _made_twice(step, pair.arguments, pair.before, own_ns)
        except Exception as error:
            let_pass(error)
            lacking = f"As a `tf.function` it raised {first_line(error)[:_LONGEST]}."
        enough = step.tracing_ms > 1e3 * _LONGEST_TRACING_S and step.record.is_timed
        if lacking is not None or enough or len(step.record.other_ms) >= _PAIRS:
            self._give_up(step, lacking)
        self._clock.interrupted_by_us(applied_ns, time.monotonic_ns())

    def _give_up(self, step: _Step, lacking: str | None) -> None:
        """End the pairs of a step, and hold on to nothing of it."""
        step.record.lacking = lacking
        self._open, step.is_over = None, True
        step.function, step.variables = None, ()


def _followed(
    update: Callable[..., Any], applied: Callable[[], None], guard: Guard
) -> Callable[..., Any]:
    def followed(*args: Any, **kwargs: Any) -> Any:
        result = update(*args, **kwargs)
        applied()
        return result

    return guard.hook(update, followed)


def _described(frame: FrameType) -> _Step:
    file, line = frame.f_code.co_filename, frame.f_lineno
    step = _Step(GraphStep(file, line))
    try:
        step.source = step_at("".join(linecache.getlines(file)), line)
        step.record.called_again = called_again(frames(frame))
    except NotAFunctionError as error:
        step.record.lacking = str(error)
    except (SyntaxError, ValueError, RecursionError):
        step.record.lacking = "Its source could not be read."
    return step


def called_again(stack: Iterator[FrameType]) -> bool:
    """Return True unless the innermost frame's function is known to be called once in the run."""
    frame = next(stack)
    # A module's name, or that of a notebook's cell, begins with a bracket.
    return not frame.f_code.co_name.startswith("<") and rounds_around(stack) != 1


def _given(step: _Step, frame: FrameType) -> dict[str, Any]:
    """Return what the function would be given, with floats of Python as tensors."""
    assert step.source is not None
    names = {**frame.f_globals, **locals_of(frame)}
    given = {name: names[name] for name in step.source.parameters}
    known = step.record.numbers
    known += [name for name in given if type(given[name]) is float and name not in known]
    constant = sys.modules["tensorflow"].constant
    return given | {name: constant(float(given[name])) for name in known}


def _tensors(values: Iterable[Any]) -> list[Any]:
    return [one for one in sys.modules["tensorflow"].nest.flatten(list(values)) if _is_dense(one)]


def _is_dense(value: Any) -> bool:
    """Return True for tensors and arrays of a fixed rank; sparse and ragged ones are none."""
    return hasattr(value, "dtype") and hasattr(value, "ndim")


def expected_kinds(counts: Iterable[int]) -> float:
    """Return how many kinds there are, by how often each was seen.

    Chao's estimator, in its form without a bias (Chao, "Nonparametric estimation of the number of
    classes in a population", Scandinavian Journal of Statistics 11, 1984; and 2005).
    """
    seen = Counter(counts)
    return seen.total() + seen[1] * (seen[1] - 1) / (2.0 * (seen[2] + 1))


_LOSSES = re.compile(r"(?<!keras)\.losses\b(?!\.)")
"""`model.losses`, and not the module `keras.losses`."""


def for_any_batch(
    own: _Shape, seen: Iterable[_Shape], elements: Iterable[_Shape | None]
) -> list[int | None]:
    """Return a tensor's shape with None for each size that another batch may have otherwise.

    Sizes are known by the parts of the dataset's `elements` that the tensor may be: those whose
    shapes go with its `own` and all that were `seen`, which lack the number of rows. Of a tensor
    that is none of them nothing is known, nor by a part without a known rank, which is None.
    """
    unknown, before = (None,) * len(own), list(seen)
    parts = [
        one
        for one in (unknown if each is None else each for each in elements)
        if _goes_with(one, own) and all(_goes_with(one[1:], other) for other in before)
    ]
    return [
        size if all(one[n] == size for one in parts or [unknown]) else None
        for n, size in enumerate(own)
    ]


def _goes_with(part: _Shape, shape: _Shape) -> bool:
    same = (size is None or size == other for size, other in zip(part, shape, strict=False))
    return len(part) == len(shape) and all(same)


def _specs(step: _Step, arguments: tuple[Any, ...]) -> Any:
    """Return the arguments with specs in the place of dense tensors, for any batch."""
    tensorflow, place = sys.modules["tensorflow"], count()
    shapes = [one.shape for one in tensorflow.nest.flatten(step.elements) if hasattr(one, "shape")]
    elements = [None if one.rank is None else tuple(one) for one in shapes]

    def relaxed(value: Any) -> Any:
        if not _is_dense(value):
            return value
        at = next(place)
        seen = {one[at][1:] for one in step.shapes}
        return tensorflow.TensorSpec(for_any_batch(tuple(value.shape), seen, elements), value.dtype)

    return tensorflow.nest.map_structure(relaxed, arguments)


def _unfit(given: Mapping[str, Any]) -> str | None:
    """Return why a function that is given these values would be traced again for each of them."""
    nest = sys.modules["tensorflow"].nest
    for name, value in given.items():
        for leaf in nest.flatten(value):
            if not hasattr(leaf, "dtype") or not hasattr(leaf, "shape"):
                kind = type(leaf).__name__
                return f"`{name}` is of the type {kind}, and another one in each step."
    return None


def _of_python(source: StepSource, frame: FrameType) -> str | None:
    """Return what the step has of Python that a function would make once, or return as a tensor."""
    tensorflow = sys.modules["tensorflow"]
    names = {**frame.f_globals, **locals_of(frame)}
    for code in source.metrics:
        if not hasattr(type(value_of(ast.parse(code, mode="eval").body, names)), "update_state"):
            return f"It calls `{code}` for its effect, which a tf.function would do once."
    for name in source.results:
        for leaf in tensorflow.nest.flatten(names.get(name)):
            if leaf is not None and not tensorflow.is_tensor(leaf):
                kind = type(leaf).__name__
                return f"Other code reads `{name}`, of the type {kind}: it would be a tensor."
    return None


def _prepare(step: _Step, frame: FrameType, arguments: tuple[Any, ...]) -> str | None:
    """Make the function, and trace it on the step's batch: nothing of it is run."""
    assert step.source is not None
    tensorflow = sys.modules["tensorflow"]
    python = _made(step.source, frame)
    file = frame.f_code.co_filename
    lines = linecache.getlines(file)
    others = [*lines[: step.source.first - 1], *lines[step.source.last :]]
    if any(map(_LOSSES.search, others)):
        # They would be those of the trace.
        return "Other code reads the losses that layers add in a step."
    lacking = _of_python(step.source, frame)
    lacking = lacking or why_not_traced(python, (file, step.source.loop_line))
    if lacking is not None:
        return lacking
    # Later batches may make a relaxed function leave out any size that is not known to stay.
    function = tensorflow.function(python, reduce_retracing=True)
    start_ns = time.monotonic_ns()
    try:
        concrete = function.get_concrete_function(*_specs(step, arguments))
        step.takes_any = True
    except Exception as error:
        let_pass(error)
        function = tensorflow.function(python)
        start_ns = time.monotonic_ns()
        concrete = function.get_concrete_function(*arguments)
    step.record.relaxed = step.takes_any
    if step.takes_any:
        step.record.shapes, step.record.traces = 1, 1.0
    _add_tracing(step, function, time.monotonic_ns() - start_ns)
    step.variables = [one for one in concrete.graph.variables if hasattr(one, "assign")]
    size = sum(one.dtype.size * (one.shape.num_elements() or 0) for one in step.variables)
    if size > _MOST_BYTES:
        return f"Its variables hold {size >> 20} MiB, too much to keep copies of."
    # Keras 3 draws by stateless operations from a variable, which is put back.
    kinds = {op.type for op in operations_of(concrete.graph)}
    stateful = [one for one in kinds if not one.startswith("Stateless")]
    step.draws = any("Random" in one or "Dropout" in one for one in stateful)
    step.function = function
    return why_not_twice(concrete.graph)


def _made(source: StepSource, frame: FrameType) -> FunctionType:
    """Return the step as a function of the frame's module, with the frame's local constants."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    definition = source.definition("train_step")
    width = len(source.loop_indent)
    local = {} if frame.f_locals is frame.f_globals else locals_of(frame)
    constants = {name: local[name] for name in source.constants if name in local}
    text = [f"def around({', '.join(constants)}):"]
    text += [f" {one[width:]}" if one.strip() else "" for one in definition]
    text.append(" return train_step")
    name = f"<step of {file}:{line}>"
    content = "".join(f"{one}\n" for one in text)
    # AutoGraph reads a function's source there.
    linecache.cache[name] = (len(content), None, content.splitlines(keepends=True), name)
    space: dict[str, Any] = {}
    exec(compile(content, name, "exec", dont_inherit=True), frame.f_globals, space)
    made = space["around"](**constants)
    assert isinstance(made, FunctionType)
    return made


def _made_twice(
    step: _Step, arguments: tuple[Any, ...], before: list[Any], own_ns: int
) -> str | None:
    """Make the step once more from the values before it, and put back those after it.

    Returns how the results differ, if so.
    """
    after = _copies(step.variables)
    try:
        traces = step.function.experimental_get_tracing_count()
        took_ns = _again(step, arguments, before)
        # The first call of a trace also optimises its graph.
        if not step.is_warm or step.function.experimental_get_tracing_count() != traces:
            traced_ns, took_ns = took_ns, _again(step, arguments, before)
            _add_tracing(step, step.function, traced_ns - took_ns)
        same = step.draws or _same_changes(step.variables, before, after)
    finally:
        # Without copies, for which there may be no memory.
        for variable, value in zip(step.variables, after, strict=True):
            variable.assign(value, read_value=False)
    if not same:
        return "As a `tf.function` it gives other values."
    if step.is_warm:
        step.record.own_ms.append(own_ns / 1e6)
        step.record.other_ms.append(took_ns / 1e6)
    step.is_warm = True
    return None


def _add_tracing(step: _Step, function: Any, took_ns: int) -> None:
    step.tracing_ms += took_ns / 1e6
    step.record.traced_ms = step.tracing_ms / max(1, function.experimental_get_tracing_count())


def _again(step: _Step, arguments: tuple[Any, ...], before: list[Any]) -> int:
    raw = sys.modules["tensorflow"].raw_ops
    for variable, value in zip(step.variables, before, strict=True):
        variable.assign(raw.DeepCopy(x=value), read_value=False)
    _wait_for(step.variables)
    start_ns = time.monotonic_ns()
    # By its concrete function: the call of a `tf.function` would be taken for the script's.
    concrete = step.function.get_concrete_function(*arguments)
    concrete(*arguments)
    _wait_for(step.variables)
    return time.monotonic_ns() - start_ns


def _copies(variables: Sequence[Any]) -> list[Any]:
    """Return values that share no memory with the variables, so that a later write copies none."""
    raw = sys.modules["tensorflow"].raw_ops
    return [raw.DeepCopy(x=one.read_value()) for one in variables]


def _wait_for(variables: Sequence[Any]) -> None:
    """Wait until the device has made all that was asked of it: it works in order."""
    if variables:
        min(variables, key=lambda one: one.shape.num_elements() or 0).numpy()


def _same_changes(variables: Sequence[Any], before: list[Any], after: list[Any]) -> bool:
    np = sys.modules["numpy"]
    apart = length = 0.0
    for variable, start, end in zip(variables, before, after, strict=True):
        now, own = np.asarray(variable.numpy()), np.asarray(end)
        if np.issubdtype(now.dtype, np.inexact):
            apart += float(np.square(now.astype("float64") - own).sum())
            length += float(np.square(own.astype("float64") - np.asarray(start)).sum())
        elif not np.array_equal(now, own):
            return False
    return bool(apart <= (_FURTHEST**2) * length)
