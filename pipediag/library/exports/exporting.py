"""What a measurement hands its figures to."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from os import PathLike
from typing import Protocol

from pipediag.capture.signal_handlers import let_pass
from pipediag.errors import PipediagError
from pipediag.library.exports.figures import figures_of
from pipediag.library.exports.opentelemetry import OpenTelemetry
from pipediag.library.exports.tensorboard import TensorBoard
from pipediag.library.result import Result
from pipediag.library.telling import tell
from pipediag.session.model import Session


class Target(Protocol):
    """Where figures can go."""

    @property
    def name(self) -> str: ...

    def write(self, session: Session, figures: Mapping[str, float], number: int) -> None: ...


class Exports:
    """Where the figures of a session go; one that fails is told once, and gets no more."""

    def __init__(self, targets: Sequence[Target] = ()) -> None:
        self._targets = list(targets)

    def write(self, result: Result, number: int) -> None:
        """Hand them to all, as those of the measurement with this number."""
        if not self._targets:
            return
        session = result.session
        figures = figures_of(session)
        for target in list(self._targets):
            try:
                target.write(session, figures, number)
            except Exception as error:  # noqa: BLE001 - the training goes on
                let_pass(error)
                self._targets.remove(target)
                tell(f"nothing goes to {target.name}: {_reason(error)}")


def exports(tensorboard: str | PathLike[str] | None, opentelemetry: bool) -> Exports:
    """Those that are asked for."""
    targets: list[Target] = []
    if tensorboard is not None:
        targets.append(TensorBoard(os.fspath(tensorboard)))
    if opentelemetry:
        targets.append(OpenTelemetry())
    return Exports(targets)


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, PipediagError) else f"{type(error).__name__}: {error}"
