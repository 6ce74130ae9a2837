from __future__ import annotations

import sys
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader, Metric, NumberDataPoint

from pipediag.library.exports.exporting import Exports, exports
from pipediag.library.exports.figures import FIGURES, figures_of
from pipediag.library.result import Result
from pipediag.session.model import Session
from tests.factories import make_session

SESSION = make_session()
RESULT = Result(SESSION, None)
MISSING = "nothing goes to OpenTelemetry: opentelemetry is not installed"


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> InMemoryMetricReader:
    """What a program's own provider collects, which no other test is to see."""
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    monkeypatch.setattr(metrics, "get_meter", provider.get_meter)
    return reader


def collected(reader: InMemoryMetricReader) -> dict[str, Metric]:
    data = reader.get_metrics_data()
    scopes = [scope for one in data.resource_metrics for scope in one.scope_metrics] if data else []
    return {metric.name: metric for scope in scopes for metric in scope.metrics}


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


def test_gauges_are_collected_with_their_units_and_places(reader: InMemoryMetricReader) -> None:
    target = exports(None, opentelemetry=True)
    target.write(RESULT, 1)
    assert SESSION.steps is not None
    later = SESSION.steps.model_copy(update={"median_ms": 12.5})
    target.write(Result(SESSION.model_copy(update={"steps": later}), None), 2)

    found = collected(reader)

    assert set(found) == {f"pipediag.{key}" for key in figures_of(SESSION)}
    step = found["pipediag.steps.median_ms"]
    [point] = step.data.data_points
    loop = SESSION.diagnosed_loop()
    assert loop is not None
    assert isinstance(point, NumberDataPoint)
    assert (step.unit, point.value) == ("ms", 12.5)
    assert dict(point.attributes or {}) == {"pipediag.loop": f"train.py:{loop.line}"}


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
    monkeypatch.setattr(metrics, "get_meter", lambda name, version: SimpleNamespace())
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
