"""What must hold between the numbers and the sentences of any session, however it was made up."""

from __future__ import annotations

import io
import math
import re
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rich.console import Console

from pipediag.measures.loops import loop_rows
from pipediag.measures.measured_loop import measure_loop
from pipediag.measures.steps import Missing
from pipediag.measures.verdict.decision import decide
from pipediag.reporters import html
from pipediag.reporters.terminal import summary as terminal
from pipediag.session.model import Script, Session
from pipediag.session.recorded_loops import RecordedBoundary
from pipediag.session.recording import RecordedWindow, Recording
from pipediag.session.timeline import Timeline
from tests.factories import make_host, make_session
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS, make_environment

milliseconds = st.floats(0.05, 500.0, allow_nan=False)
parts = st.floats(0.0, 1.0, allow_nan=False)


@st.composite
def recordings(draw: st.DrawFn) -> Recording:
    """A `fit` with steps, waits within and between them, and perhaps a repeated batch."""
    step = draw(milliseconds)
    block = make_block(draw(st.integers(5, 30)), step, step * draw(st.floats(0.0, 1.1)))
    longer = draw(st.lists(st.floats(1.0, 30.0), max_size=4))
    block.durations_ns[: len(longer)] = [round(step * MS * times) for times in longer]
    windows: list[RecordedWindow] = [make_window("baseline", block)]
    if draw(st.booleans()):
        windows.append(make_window("repeat", make_block(20, step * draw(st.floats(0.05, 1.5)))))
    epochs, per_epoch = draw(st.integers(1, 20)), draw(st.integers(1, 200))
    seen = draw(st.integers(0, 3))
    asked = draw(st.booleans())
    now, boundaries = 2000 * MS, []
    for _ in range(seen):
        between, wait = (round(draw(st.floats(0.0, 5000.0)) * MS) for _ in range(2))
        begin = now + between
        boundaries.append(
            RecordedBoundary(now, begin, begin + wait)
            if asked
            else RecordedBoundary(now, begin, None, first_step_ns=wait + round(step * MS))
        )
        now = begin + wait + round(10 * step * MS)
    keras = make_recorded_loop().keras
    assert keras is not None
    planned = draw(st.sampled_from([None, epochs * per_epoch]))
    loop = make_recorded_loop(
        planned_steps=planned,
        steps=10 * seen + 60,
        elapsed_ns=round(draw(parts) * (now - 1000 * MS)),
        keras=replace(keras, epochs=epochs, steps_per_epoch=per_epoch),
        asked_ns=1000 * MS,
        warm_ns=draw(st.sampled_from([None, 2000 * MS])),
        last_ns=now + round(draw(parts) * 1000 * MS),
        epoch_boundaries=boundaries,
        set_aside_ns=round(draw(parts) * 100 * MS),
    )
    return make_recording(loops=[loop], windows=windows, snapshots=[])


def session_of(recording: Recording) -> Session:
    """By the same steps as a run's, without the files."""
    [loop] = recording.loops
    sections, _ = measure_loop(Timeline(), recording, loop, make_host())
    draft = make_session(
        script=Script(path="train.py", args=[], outcome="stopped"),
        loops=loop_rows(recording, Missing("No ledger."), loop),
        environment=make_environment(),
        findings=[],
        **sections,
    )
    return draft.but(verdict=decide(draft))


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(recordings())
def test_numbers_are_finite_add_up_and_have_a_reason_where_they_are_missing(
    recording: Recording,
) -> None:
    session = session_of(recording)
    for name, value in numbers(session.model_dump()):
        assert math.isfinite(value), name
    for section in ("steps", "breakdown", "perturbation", "ceiling", "host"):
        assert getattr(session, section) or getattr(session, f"{section}_missing"), section

    steps, breakdown, ceiling = session.steps, session.breakdown, session.ceiling
    assert sum(share.percent for share in breakdown.values()) == pytest.approx(100.0)
    step_ms, wait_ms = sum(share.ms for share in breakdown.values()), breakdown["input_wait"].ms
    assert step_ms == pytest.approx(steps.mean_ms)
    if ceiling.speedup_if_input_free is None:
        assert wait_ms > 0.99 * step_ms
    else:
        assert ceiling.speedup_if_input_free == pytest.approx(step_ms / (step_ms - wait_ms))

    [loop] = session.loops
    assert loop.elapsed_s >= 0.0
    # A share that is contested is no high confidence in another verdict.
    wait = session.input_wait
    if wait.contested_by_percent is not None:
        assert (wait.method, bool(wait.disagreement)) == ("native", True)
        sides = {
            percent >= 20.0
            for percent in (wait.native_percent, wait.contested_by_percent)
            if percent is not None
        }
        assert len(sides) == 1 or session.verdict.confidence != "high"


@settings(max_examples=10, suppress_health_check=[HealthCheck.too_slow])
@given(recordings())
def test_no_sentence_claims_a_gain_of_nothing_or_holds_no_number(recording: Recording) -> None:
    session = session_of(recording)
    console = Console(width=100, record=True, file=io.StringIO())
    terminal.render(session, console, output_directory=None, verbose=True)
    shown = console.export_text()
    assert "Step" in shown
    page = re.sub(r"<[^>]+>", " ", html.render(session))
    for text in (session.verdict.model_dump_json(), shown, page):
        assert not re.search(r"\b1(\.0[0-4]?)?x at most", text)
        assert not re.search(r"\b(nan|inf|None)\b", text)


def numbers(value: Any, name: str = "session") -> list[tuple[str, float]]:
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in numbers(item, f"{name}.{key}")]
    if isinstance(value, list | tuple):
        return [found for item in value for found in numbers(item, name)]
    return [(name, float(value))] if isinstance(value, int | float) else []
