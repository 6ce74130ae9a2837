"""Runs made of spans, in seconds, and the ledger's rows of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipediag.measures.run.ledger import measure_run
from pipediag.measures.steps import Missing
from pipediag.session.ledger import Run, RunPart
from pipediag.session.messages import ChildResult
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.recording import Recording
from pipediag.session.timeline import SeenLine, SeenLines, Span, Timeline
from pipediag.vocabulary import ScriptOutcome, SpanKind
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import SCRIPT

FIT_LINE = 20

Rows = dict[tuple[str, str | None], float]


def ended(
    started_ns: int, ended_ns: int, outcome: ScriptOutcome, status: int | None = None
) -> ChildResult:
    """How a run's process ended, and when."""
    return ChildResult(outcome, status, None, started_ns, ended_ns)


def ns(seconds: float) -> int:
    return round(seconds * 1e9)


class Written:
    """A timeline as it is written, span by span in any order."""

    def __init__(self) -> None:
        self.timeline = Timeline()

    def span(
        self,
        kind: SpanKind,
        start_s: float,
        end_s: float | None,
        name: str = "",
        line: int | None = None,
    ) -> Span:
        spans = self.timeline.spans
        end_ns = None if end_s is None else ns(end_s)
        file = None if line is None else SCRIPT
        spans.append(Span(len(spans) + 1, kind, ns(start_s), end_ns, name, file, line))
        return spans[-1]

    def steps(self, start_s: float, end_s: float | None, loop_id: str = "loop1") -> None:
        self.span("steps", start_s, end_s, loop_id)

    def epoch(self, *moments_s: float, loop_id: str = "loop1") -> None:
        """When its first batch was asked for, was there, and when its steps were over."""
        asked_s, handed_s, over_s = moments_s
        self.span("first_batch", asked_s, handed_s, loop_id)
        self.steps(handed_s, over_s, loop_id)

    def epochs(
        self, count: int, begun_s: float, wait_s: float, steps_s: float, end_s: float
    ) -> None:
        """Equal epochs: a wait for the first batch, steps, and something else at the end."""
        for epoch in range(count):
            asked_s = begun_s + epoch * (wait_s + steps_s + end_s)
            self.epoch(asked_s, asked_s + wait_s, asked_s + wait_s + steps_s)

    def saw(self, start_s: float, end_s: float, *lines: SeenLine) -> None:
        self.timeline.seen.append(SeenLines(ns(start_s), ns(end_s), lines))


def seen(
    line: int, seconds: float, function: str = "<module>", importing: bool = False
) -> SeenLine:
    return SeenLine(SCRIPT, line, function, importing, ns(seconds))


def fit_loop(epochs: int = 10, steps_per_epoch: int | None = 200, **overrides: Any) -> RecordedLoop:
    """A `fit` at line 20, in no loop, whose steps take 10 ms."""
    loop = make_recorded_loop(**{"planned_rounds": 1, **overrides})
    assert loop.keras is not None
    loop.keras = replace(loop.keras, epochs=epochs, steps_per_epoch=steps_per_epoch)
    if "planned_steps" not in overrides:
        loop.planned_steps = epochs * steps_per_epoch if steps_per_epoch else None
    return loop


def own_loop(**overrides: Any) -> RecordedLoop:
    """A training loop of the script's own at line 30, of a length that nobody has planned."""
    values = {"kind": "eager", "line": 30, "keras": None, "planned_steps": None}
    return make_recorded_loop(**{**values, **overrides})


def recording_of(*loops: RecordedLoop, **overrides: Any) -> Recording:
    """Each loop that trains has a baseline of 40 steps of 10 ms, before the script's start."""
    windows = [
        make_window("baseline", make_block(40, 10.0, start_ms=0.0), loop_id=loop.id)
        for loop in loops
        if loop.role == "training"
    ]
    return make_recording(**{"loops": list(loops), "windows": windows, **overrides})


def ledger(
    written: Written,
    recording: Recording,
    end_s: float,
    outcome: ScriptOutcome = "finished",
    start_s: float = 0.0,
) -> Run:
    """The run's ledger, whose parts are what they have to be in every one."""
    bounds = ended(ns(start_s), ns(end_s), outcome)
    run = measure_run(written.timeline, recording, bounds)
    assert not isinstance(run, Missing)
    assert abs(sum(part.seconds for part in run.parts) - run.whole_s) < 1e-6
    assert abs(sum(part.percent for part in run.parts) - 100.0) < 1e-6
    for part in run.parts:
        assert part.seconds > 0
        assert (part.basis == "measured") == (part.ci95_percent is None)
        if part.ci95_percent is not None:
            low, high = part.ci95_percent
            assert 0 <= low <= part.percent + 1e-9
            assert part.percent - 1e-9 <= high <= 100
    return run


def rows(run: Run) -> Rows:
    """Seconds by part and what, to a tenth of a millisecond."""
    found: Rows = {}
    for part in run.parts:
        key = part.part, part.what
        found[key] = round(found.get(key, 0.0) + part.seconds, 4)
    return found


def row(run: Run, part: str, what: str | None = None) -> RunPart:
    (found,) = [one for one in run.parts if (one.part, one.what) == (part, what)]
    return found
