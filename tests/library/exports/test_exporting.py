from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.library.exports.exporting import Exports, exports
from pipediag.library.exports.figures import FIGURES, figures_of
from pipediag.library.result import Result
from pipediag.session.model import Session
from tests.factories import make_session

SESSION = make_session()
RESULT = Result(SESSION, None)
MISSING = "nothing goes to OpenTelemetry: opentelemetry is not installed"


class Meter:
    """As much of OpenTelemetry's as is asked for."""

    def __init__(self) -> None:
        self.made: dict[str, tuple[str, str]] = {}
        self.set: dict[str, list[tuple[float, dict[str, str]]]] = {}

    def create_gauge(self, name: str, unit: str, description: str) -> SimpleNamespace:
        assert name not in self.made, "the same gauge is made twice"
        self.made[name] = unit, description
        points = self.set.setdefault(name, [])
        return SimpleNamespace(set=lambda value, place: points.append((value, place)))


@pytest.fixture
def meter(monkeypatch: pytest.MonkeyPatch) -> Meter:
    meter = Meter()
    metrics = SimpleNamespace(get_meter=lambda name, version: meter)
    monkeypatch.setitem(sys.modules, "opentelemetry", SimpleNamespace(metrics=metrics))
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", metrics)
    return meter


def test_figures_are_called_as_in_the_session() -> None:
    figures = figures_of(SESSION)
    assert SESSION.steps is not None
    assert SESSION.breakdown is not None
    assert figures["steps.median_ms"] == SESSION.steps.median_ms
    shares = {name: share.percent for name, share in SESSION.breakdown.items()}
    assert shares
    assert {name: figures[f"breakdown.{name}.percent"] for name in shares} == shares
    assert set(figures) <= {figure.key for figure in FIGURES}


def test_what_was_not_measured_is_no_figure() -> None:
    nothing = SESSION.model_copy(
        update={"steps": None, "breakdown": None, "ceiling": None, "host": None}
    )
    assert figures_of(nothing) == {}


def test_gauges_are_made_once_and_set_each_time(meter: Meter) -> None:
    target = exports(None, opentelemetry=True)
    target.write(RESULT, 1)
    target.write(RESULT, 2)
    assert SESSION.steps is not None
    values = [value for value, _ in meter.set["pipediag.steps.median_ms"]]
    assert values == [SESSION.steps.median_ms] * 2
    assert meter.made["pipediag.steps.median_ms"][0] == "ms"
    loop = SESSION.diagnosed_loop()
    [place] = {tuple(place.items()) for _, place in meter.set["pipediag.steps.median_ms"]}
    assert place == ((("pipediag.loop", f"train.py:{loop.line}"),) if loop is not None else ())


def test_a_package_that_is_missing_is_said_once(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", None)
    target = exports(None, opentelemetry=True)
    target.write(RESULT, 1)
    target.write(RESULT, 2)
    [said] = capsys.readouterr().err.splitlines()
    assert said.startswith(f"pipediag: {MISSING}")


def test_gauges_that_this_version_lacks_are_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    metrics = SimpleNamespace(get_meter=lambda name, version: SimpleNamespace())
    monkeypatch.setitem(sys.modules, "opentelemetry", SimpleNamespace(metrics=metrics))
    monkeypatch.setitem(sys.modules, "opentelemetry.metrics", metrics)
    exports(None, opentelemetry=True).write(RESULT, 1)
    assert "has no gauges" in capsys.readouterr().err


def test_scalars_need_what_writes_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    exports("logs", opentelemetry=False).write(RESULT, 1)
    assert capsys.readouterr().err == (
        "pipediag: nothing goes to TensorBoard: TensorFlow is not imported, which writes the "
        "scalars.\n"
    )


def test_a_target_that_fails_keeps_nothing_from_the_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    written: list[int] = []

    class Fails:
        name = "nowhere"

        def write(self, session: Session, figures: Mapping[str, float], number: int) -> None:
            raise OSError("no space left")

    class Writes:
        name = "here"

        def write(self, session: Session, figures: Mapping[str, float], number: int) -> None:
            written.append(number)

    targets: list[Any] = [Fails(), Writes()]
    export = Exports(targets)
    export.write(RESULT, 1)
    export.write(RESULT, 2)
    assert written == [1, 2]
    assert capsys.readouterr().err == (
        "pipediag: nothing goes to nowhere: OSError: no space left\n"
    )
