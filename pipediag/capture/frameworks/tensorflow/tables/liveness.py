"""How much of what a step makes of a whole table is in memory at one time.

Operations are taken to run as soon as what they read is there, all of one wave at once, as the
executor may run them. An operation that works element by element writes over an input that nothing
else reads.
"""

from __future__ import annotations

from typing import Any

from pipediag.capture.frameworks.tensorflow.tables.unfolded import At, Frame, Unfolded

_Key = tuple[int, str, int]
Made = tuple[Frame, Any, list[Any]]
"""An operation, where it is, and those of its outputs that are as large as the table."""

_IN_PLACE = frozenset(
    "Add AddN AddV2 Sub Mul MulNoNan RealDiv DivNoNan Sqrt Rsqrt Square Neg Abs Sign Pow Maximum "
    "Minimum Exp Tanh Sigmoid SelectV2 ClipByValue TensorScatterUpdate TensorScatterAdd".split()
)
"""Those that forward an input's memory to their output."""
_ASSIGNS = ("Assign", "Resource")
"""How the types of operations begin that write to variables."""


class Liveness:
    """Of one step."""

    def __init__(self, step: Unfolded) -> None:
        self._step = step
        self._waves: dict[tuple[int, str], int] = {}
        self._readers: dict[_Key, list[tuple[Frame, Any]]] = {}
        for frame, op in step.operations:
            for tensor in op.inputs:
                key = step.source(At(frame, tensor)).key
                self._readers.setdefault(key, []).append((frame, op))

    def peak_bytes(self, made: list[Made], sizes: dict[_Key, int]) -> int:
        """The most that these outputs, of these sizes, take at one time."""
        large = set(sizes)
        change: dict[int, int] = {}
        for frame, op, outputs in made:
            begin = self._wave(frame, op, large)
            for tensor in outputs:
                key = At(frame, tensor).key
                # Memory that is taken over is counted with the input until this wave is over.
                first = begin + 1 if self._takes_over(frame, op, large, sizes[key]) else begin
                last = max(
                    [begin, *(self._wave(*reader, large) for reader in self._readers_of(key))]
                )
                change[first] = change.get(first, 0) + sizes[key]
                change[last + 1] = change.get(last + 1, 0) - sizes[key]
        held = most = 0
        for wave in sorted(change):
            held += change[wave]
            most = max(most, held)
        return most

    def _readers_of(self, key: _Key) -> list[tuple[Frame, Any]]:
        return self._readers.get(key, [])

    def _takes_over(self, frame: Frame, op: Any, large: set[_Key], size: int) -> bool:
        """Whether its output is written over an input."""
        if op.type not in _IN_PLACE:
            return False
        wave = self._wave(frame, op, large)
        for tensor in op.inputs:
            key = self._step.source(At(frame, tensor)).key
            if key in large and tensor.dtype.size * (tensor.shape.num_elements() or 0) >= size:
                waves = [self._wave(*reader, large) for reader in self._readers_of(key)]
                if waves.count(wave) == 1 and max(waves) == wave:
                    return True
        return False

    def _wave(self, frame: Frame, op: Any, large: set[_Key]) -> int:
        """After how many others that make or write a whole table it can run."""
        known = self._waves.get((frame.index, op.name))
        if known is not None:
            return known
        self._waves[frame.index, op.name] = 0  # A loop's own results come from the round before.
        before = 0
        for tensor in op.inputs:
            at = self._step.source(At(frame, tensor))
            if at.key in large or at.op.type == "ReadVariableOp":
                before = max(before, self._wave(at.frame, at.op, large) + (at.key in large))
        for other in op.control_inputs:
            if other.type.startswith(_ASSIGNS):
                before = max(before, self._wave(frame, other, large) + 1)
        self._waves[frame.index, op.name] = before
        return before
