"""Gauges of OpenTelemetry, which go where the program's own meter provider sends its metrics."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from pipediag import __version__
from pipediag.errors import PipediagError
from pipediag.library.exports.figures import FIGURES
from pipediag.session.model import Session

_LOOP = "pipediag.loop"
"""The attribute that says which loop it is, as `train.py:42`."""


class OpenTelemetry:
    """Sets a gauge for each figure, called by its key."""

    name = "OpenTelemetry"

    def __init__(self) -> None:
        self._gauges: dict[str, Any] = {}

    def write(self, session: Session, figures: Mapping[str, float], number: int) -> None:  # noqa: ARG002
        """Set what was measured; a gauge of what was not keeps what it has.

        Raises:
            PipediagError: OpenTelemetry is not installed, or has no such gauges.
        """
        if not self._gauges:
            self._gauges = _gauges()
        loop = session.diagnosed_loop()
        place = {} if loop is None or loop.file is None else {_LOOP: _place(loop.file, loop.line)}
        for key, value in figures.items():
            self._gauges[key].set(value, place)


def _gauges() -> dict[str, Any]:
    try:
        metrics = import_module("opentelemetry.metrics")
    except ImportError:
        raise PipediagError(
            "opentelemetry is not installed (pip install opentelemetry-sdk)."
        ) from None
    meter = metrics.get_meter("pipediag", __version__)
    if not hasattr(meter, "create_gauge"):
        raise PipediagError("this version of opentelemetry has no gauges; 1.23 or newer is needed.")
    return {
        figure.key: meter.create_gauge(
            f"pipediag.{figure.key}", unit=figure.unit, description=figure.what
        )
        for figure in FIGURES
    }


def _place(file: str, line: int | None) -> str:
    name = Path(file).name
    return name if line is None else f"{name}:{line}"
