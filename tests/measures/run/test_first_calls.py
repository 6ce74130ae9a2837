"""Steps that built a function, asked for an epoch's first batch, or both; spans made by hand."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from pipediag.measures.run.ledger import RunBounds, measure_run
from pipediag.session.ledger import Run
from pipediag.session.recorded_loops import RecordedLoop, RecordedSeam
from pipediag.session.recorded_windows import RecordedWindow
from pipediag.session.timeline import Span, Timeline
from pipediag.vocabulary import SpanKind
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS, SCRIPT

END_MS = 10_000


@dataclass
class Spans:
    """Numbered as they come, within a script of ten seconds."""

    all: list[Span] = field(default_factory=list)

    def add(self, kind: SpanKind, start_ms: int, end_ms: int, name: str = "", line: int = 20):
        number = len(self.all) + 1
        self.all.append(Span(number, kind, start_ms * MS, end_ms * MS, name, SCRIPT, line))

    def ledger(self, loop: RecordedLoop, *windows: RecordedWindow) -> Run:
        """Steps of 10 ms."""
        baseline = make_window("baseline", make_block(40))
        recording = make_recording(loops=[loop], windows=[baseline, *windows])
        bounds = RunBounds(0, END_MS * MS, "finished")
        run = measure_run(Timeline(self.all), recording, bounds)
        assert isinstance(run, Run)
        return run


def started() -> Spans:
    spans = Spans()
    spans.add("script", 0, END_MS)
    return spans


def test_the_first_wait_is_told_from_what_is_built_around_the_tracing() -> None:
    spans = started()
    spans.add("fit", 1000, 4000, "fit")
    spans.add("steps", 1000, 4000, "loop1")
    # 1 ms before the tracing, and then 600: the wait of 400, a step of 10, and building.
    spans.add("tracing", 1001, 1500)
    spans.add("first_call", 1000, 2100, "train_function")
    run = spans.ledger(make_recorded_loop(fill_ns=400 * MS))
    assert run.seconds_of("epoch_start") == pytest.approx(0.4)
    assert run.seconds_of("compile") == pytest.approx(1.1 - 0.4 - 0.01)
    assert run.seconds_of("steps") == pytest.approx(1.9 + 0.01)


def test_a_step_that_builds_at_an_epochs_begin_takes_nothing_from_the_other_steps() -> None:
    spans, seams = started(), []
    for fold in range(4):
        begin = 1000 + 2000 * fold
        spans.add("fit", begin, begin + 1600, "fit")
        spans.add("steps", begin, begin + 1200, "loop1")
        spans.add("tracing", begin + 1, begin + 500)
        spans.add("first_call", begin, begin + 900, "train_function")
        spans.add("steps", begin + 1250, begin + 1500, "loop1")
        seams += [
            RecordedSeam((begin - 400) * MS, (begin + 0) * MS, None, 900 * MS),
            RecordedSeam((begin + 1200) * MS, (begin + 1250) * MS, None, 60 * MS),
        ]
    run = spans.ledger(make_recorded_loop(fill_ns=50 * MS, epoch_seams=seams[1:]))
    # Eight waits of 50 ms, four of them within what was built.
    assert run.seconds_of("epoch_start") == pytest.approx(8 * 0.05)
    assert run.seconds_of("compile") == pytest.approx(4 * (0.9 - 0.05 - 0.01))
    assert run.seconds_of("steps") == pytest.approx(4 * (0.3 + 0.2 + 0.01))


def test_a_first_wait_is_one_where_nothing_is_built_as_well() -> None:
    spans = started()
    spans.add("fit", 1000, 4000, "fit")
    spans.add("steps", 1000, 4000, "loop1")
    run = spans.ledger(make_recorded_loop(fill_ns=700 * MS))
    assert run.seconds_of("epoch_start") == pytest.approx(0.7)
    assert run.seconds_of("steps") == pytest.approx(2.3)


@pytest.mark.parametrize(("fill_ms", "waited_ms"), [(400, 400), (None, 0), (5000, 600)])
def test_what_an_evaluations_first_call_waited_is_not_its_building(
    fill_ms: int | None, waited_ms: int
) -> None:
    spans = started()
    spans.add("evaluation", 5000, 6000, "evaluate", line=30)
    spans.add("steps", 5000, 6000, "loop2")
    spans.add("first_call", 5000, 5600, "test_function", line=30)
    loop = make_recorded_loop(
        id="loop2", role="evaluate", line=30, fill_ns=None if fill_ms is None else fill_ms * MS
    )
    run = spans.ledger(loop)
    assert run.seconds_of("compile") == pytest.approx(0.6 - waited_ms / 1000)
    assert run.seconds_of("evaluation") == pytest.approx(0.4 + waited_ms / 1000)


def test_profiled_steps_of_a_loop_within_a_function_were_never_taken_from_it() -> None:
    spans = started()
    spans.add("aside", 0, 900)
    spans.add("steps", 1000, 4000, "loop1")
    profile = make_window("profile", make_block(20, start_ms=2000.0))
    run = spans.ledger(make_recorded_loop(kind="in_graph", keras=None, fill_ns=None), profile)
    assert run.pipediag_s == pytest.approx(0.9)
    assert run.seconds_of("steps") == pytest.approx(3.0)
