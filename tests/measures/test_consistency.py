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
from pipediag.measures.verdict.decision import decide
from pipediag.reporters import html
from pipediag.reporters.terminal import summary as terminal
from pipediag.session.model import Script, Session
from pipediag.session.recorded_loops import RecordedSeam
from pipediag.session.recording import RecordedWindow, Recording
from pipediag.session.timeline import Timeline
from tests.factories import make_host, make_session
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS, make_environment

milliseconds = st.floats(0.05, 500.0, allow_nan=False)
parts = st.floats(0.0, 1.0, allow_nan=False)
examples = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])


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
    now, seams = 2000 * MS, []
    for _ in range(seen):
        between, wait = (round(draw(st.floats(0.0, 5000.0)) * MS) for _ in range(2))
        begin = now + between
        seams.append(
            RecordedSeam(now, begin, begin + wait)
            if asked
            else RecordedSeam(now, begin, None, first_step_ns=wait + round(step * MS))
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
        warm_steps=draw(st.integers(0, 10 * seen + 60)),
        epoch_seams=seams,
        set_aside_ns=round(draw(parts) * 100 * MS),
    )
    return make_recording(loops=[loop], windows=windows, snapshots=[])


def session_of(recording: Recording) -> Session:
    """By the same steps as a run's, without the files."""
    [loop] = recording.loops
    sections, _ = measure_loop(Timeline(), recording, loop, make_host())
    draft = make_session(
        script=Script(path="train.py", args=[], outcome="stopped"),
        loops=loop_rows(recording, loop),
        environment=make_environment(),
        findings=[],
        **sections,
    )
    return draft.model_copy(update={"verdict": decide(draft)})


@examples
@given(recordings())
def test_the_ceiling_is_the_breakdowns(recording: Recording) -> None:
    session = session_of(recording)
    breakdown, ceiling = session.breakdown, session.ceiling
    assert breakdown is not None
    assert ceiling is not None
    step, wait = sum(share.ms for share in breakdown.values()), breakdown["input_wait"].ms
    if ceiling.speedup_if_input_free is None:
        assert ceiling.missing
        assert wait > 0.99 * step
    else:
        assert ceiling.speedup_if_input_free == pytest.approx(step / (step - wait), rel=1e-6)


@examples
@given(recordings())
def test_percents_add_up_to_a_hundred_and_milliseconds_to_the_mean_step(
    recording: Recording,
) -> None:
    session = session_of(recording)
    assert session.steps is not None
    assert session.breakdown is not None
    assert sum(s.percent for s in session.breakdown.values()) == pytest.approx(100.0)
    total = sum(share.ms for share in session.breakdown.values())
    assert total == pytest.approx(session.steps.mean_ms)


@examples
@given(recordings())
def test_a_loops_time_adds_up_and_its_projection_is_no_less_than_what_was_seen(
    recording: Recording,
) -> None:
    session = session_of(recording)
    [loop] = session.loops
    if loop.projected_s is not None:
        assert loop.projected_s >= loop.elapsed_s
    time = loop.time
    if time is None:
        assert loop.time_missing
        return
    named = (time.steps_s, time.first_batches_s, time.between_epochs_s, time.unexplained_s)
    assert min(named) >= 0.0
    assert sum(named) == pytest.approx(time.total_s, abs=1e-8)


@examples
@given(recordings())
def test_a_share_that_is_contested_is_no_high_confidence_in_another_verdict(
    recording: Recording,
) -> None:
    session = session_of(recording)
    wait = session.input_wait
    assert wait is not None
    if wait.contested_by_percent is not None:
        assert wait.method == "native"
        assert wait.disagreement
        sides = {
            percent >= 20.0
            for percent in (wait.native_percent, wait.contested_by_percent)
            if percent is not None
        }
        assert len(sides) == 1 or session.verdict.confidence != "high"


@settings(examples, max_examples=15)
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


@examples
@given(recordings())
def test_every_number_is_finite_and_what_is_missing_has_a_reason(recording: Recording) -> None:
    session = session_of(recording)
    for name, value in numbers(session.model_dump()):
        assert math.isfinite(value), name
    for section in ("steps", "breakdown", "differential", "perturbation", "ceiling", "host"):
        if getattr(session, section) is None:
            assert getattr(session, f"{section}_missing"), section


def numbers(value: Any, name: str = "session") -> list[tuple[str, float]]:
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in numbers(item, f"{name}.{key}")]
    if isinstance(value, list | tuple):
        return [found for item in value for found in numbers(item, name)]
    return [(name, float(value))] if isinstance(value, int | float) else []
