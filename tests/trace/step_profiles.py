"""Profiles whose steps nothing marks."""

from __future__ import annotations

from collections.abc import Iterable

from tests.trace.builder import LineBuilder, TraceBuilder


def add_annotations(line: LineBuilder, name: str, *spans: tuple[int, int]) -> None:
    """Annotations as Keras and JAX write them, numbered from 1."""
    for number, (start, end) in enumerate(spans, start=1):
        line.event(name, start, end, step_num=number)


def add_functions(line: LineBuilder, names: Iterable[str], *, every: int, lasting: int) -> None:
    """Calls of jitted functions one after another, each written twice as JAX does."""
    for number, name in enumerate(names):
        start = number * every
        for _ in range(2):
            line.event(f"PjitFunction({name})", start, start + lasting)


def add_kernels(
    line: LineBuilder, names: Iterable[str], *, start: int = 0, pause: int = 5, lasting: int = 10
) -> None:
    """Kernels of equal length with equal pauses; `_` in place of a name pauses once more."""
    for name in names:
        if name != "_":
            line.event(name, start, start + lasting)
            start += lasting
        start += pause


class Launcher:
    """Starts kernels from a thread of the host, with correlation ids of their own."""

    def __init__(self, builder: TraceBuilder, host_line: LineBuilder) -> None:
        self._host = host_line
        self._stream = builder.plane("/device:GPU:0").line("Stream #13(Kernel)", 13)
        self._launched = 0

    def kernel(self, called: int, start: int, end: int, name: str = "volta_sgemm") -> None:
        self._launched += 1
        self._host.event("cuLaunchKernel", called, called + 2, correlation_id=self._launched)
        self._stream.event(name, start, end, correlation_id=self._launched)
