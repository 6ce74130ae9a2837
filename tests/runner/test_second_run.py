"""The second run of a script and what the session says of it, with a stand-in for the child."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from pipediag.errors import PipediagError
from pipediag.runner import second_run as module
from pipediag.runner.analysis import AnalysisRequest
from pipediag.runner.build_session import EndedRun, Recorded
from pipediag.runner.child_connection import Ask
from pipediag.runner.output import OutputDirectory
from pipediag.runner.progress import Shown, runs_again
from pipediag.runner.second_run import SecondRun, is_same_loop, second_run
from pipediag.session.messages import (
    RECORDING_FILE,
    Answer,
    ChildResult,
    Command,
    RunSettings,
    TrialsAwaited,
    VariantRefused,
)
from pipediag.session.model import Script
from pipediag.session.recording import RecordedOperation, Recording
from pipediag.session.timeline import HostTrack
from pipediag.vocabulary import ScriptOutcome
from tests.factories import make_finding, make_loop, make_session
from tests.recordings import make_recorded_loop, make_recording
from tests.records import SCRIPT
from tests.trials.bench import make_edit

Waits = Callable[[TrialsAwaited, Ask], None]

STOPPED = ChildResult("stopped", None, "Pipediag stopped it.", 0, 1)
FIRST = make_recording(outcome="finished")
FINISHED = Script(path=SCRIPT, args=[], outcome="finished", status=0)


@dataclass
class Child:
    """Stands in for the second run."""

    capture: Path
    ends: ChildResult = STOPPED
    waits: bool = True
    alone: bool = False
    recording: Any = field(default_factory=make_recording)
    given: dict[str, Any] = field(default_factory=dict)
    settings: list[RunSettings] = field(default_factory=list)
    refuses: str | None = None
    shown: list[Shown] = field(default_factory=list)

    def supervise(self, settings: RunSettings, on_trials: Waits, **given: Any) -> ChildResult:
        self.settings.append(settings)
        self.given = given
        if self.refuses is not None:
            raise PipediagError(self.refuses)
        if self.recording is not None:
            text = json.dumps(asdict(self.recording))
            (self.capture / RECORDING_FILE).write_text(text, encoding="utf-8")
        if self.waits:
            now_ns = time.monotonic_ns()
            on_trials(TrialsAwaited("loop1", self.alone, False, now_ns), self.answer)
        return self.ends

    def answer(self, command: Command, _limit_s: float) -> Answer:
        return VariantRefused(command.variant, "It can't be run.")


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    played = Child(tmp_path)
    monkeypatch.setattr(module, "supervise", played.supervise)
    return played


def first_run(budget_s: float = 60.0, timeout_s: float | None = None, **overrides: Any) -> Recorded:
    """A script that finished, and whose one edit was not tried."""
    values: dict[str, Any] = {
        "script": FINISHED,
        "loops": [make_loop(id="loop1")],
        "findings": [make_finding(edit=make_edit("op2"))],
    }
    settings = RunSettings(SCRIPT, (), False, "first", run_to_end=True)
    request = AnalysisRequest(
        SCRIPT, budget_s=budget_s, timeout_s=timeout_s, script_output_to_stderr=True
    )
    child = ChildResult("finished", 0, None, time.monotonic_ns() - 10**9, time.monotonic_ns())
    output = OutputDirectory(Path("out"), Path("first"), None, True)
    ended = EndedRun(request, settings, output, child, HostTrack(1), None, time.time())
    session = make_session(**{**values, **overrides})
    return Recorded(ended, session, session, FIRST)


def run(child: Child, first: Recorded) -> SecondRun | None:
    return second_run(first, child.capture, child.shown.append)


def test_it_holds_the_one_loop_tells_so_before_and_is_stopped_after(child: Child) -> None:
    second = run(child, first_run())

    [settings] = child.settings
    assert (settings.hold_loop, settings.run_to_end) == ("loop1", False)
    assert settings.capture_directory == str(child.capture)
    assert child.given["timeout_s"] is None
    assert child.given["json_mode"] is True
    assert child.shown[0] == runs_again(1)
    assert second.outcome is not None
    assert second.cut_short
    assert second.says.endswith("time to try changes in its loop. Pipediag stopped it.")


def test_both_runs_share_the_time(child: Child) -> None:
    late = first_run(timeout_s=0.5)
    assert "allowed by `--timeout` was up" in run(child, late).says
    assert "allowed by `--budget` was up" in run(child, first_run(budget_s=0.0)).says
    assert child.settings == []

    early = first_run(timeout_s=1001.0)
    run(child, early)
    assert 900 < child.given["timeout_s"] <= 1000


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"waits": False}, "nothing was tried: its loop was over before it could be held."),
        ({"recording": None}, "this time its loop, or what that reads, was another."),
        (
            {"recording": make_recording(loops=[make_recorded_loop(line=99)])},
            "this time its loop, or what that reads, was another.",
        ),
        ({"alone": True}, "could not be held, so its pipeline was tried alone."),
        ({"refuses": "cannot run it: gone."}, "could not be run a second time: cannot run it"),
        (
            {
                "waits": False,
                "recording": make_recording(
                    loops=[make_recorded_loop(untried="No trial was made: no memory.")]
                ),
            },
            "nothing was tried: No trial was made: no memory.",
        ),
    ],
    ids=["too short", "no recording", "another loop", "alone", "no child", "not held"],
)
def test_what_came_of_it_is_said(child: Child, changed: dict[str, Any], words: str) -> None:
    for name, value in changed.items():
        setattr(child, name, value)

    assert words in run(child, first_run()).says


@pytest.mark.parametrize(
    ("outcome", "detail"), [("interrupted", None), ("raised", "FileExistsError: out")]
)
@pytest.mark.parametrize("waits", [True, False])
def test_a_second_run_that_ends_otherwise_leaves_what_there_is(
    child: Child, outcome: ScriptOutcome, detail: str | None, waits: bool
) -> None:
    child.ends, child.waits = ChildResult(outcome, 1, detail, 0, 1), waits
    second = run(child, first_run())

    assert second.says.endswith(f". {detail or 'It was interrupted'}.")
    assert (second.outcome is not None) is waits


def op(number: int, kind: str, *parents: int, line: int = 1, **fields: Any) -> RecordedOperation:
    parent_ids = [f"op{parent}" for parent in parents]
    return RecordedOperation(f"op{number}", kind, kind, "train.py", line, parent_ids, **fields)


def recorded(*operations: RecordedOperation, root: str, **loop: Any) -> Recording:
    return make_recording(
        operations=list(operations), loops=[make_recorded_loop(root_op_id=root, **loop)]
    )


PIPELINE = recorded(op(1, "range"), op(2, "map", 1, line=2), op(3, "batch", 2), root="op3")


@pytest.mark.parametrize(
    "second",
    [
        recorded(*PIPELINE.operations, root="op3", line=9),
        recorded(*PIPELINE.operations, root="op3", kind="eager"),
        recorded(*PIPELINE.operations, root="op3", id="loop2"),
        recorded(op(1, "range"), op(2, "map", 1, line=5), op(3, "batch", 2), root="op3"),
    ],
)
def test_a_script_that_behaves_otherwise_is_found_out(second: Recording) -> None:
    assert not is_same_loop(PIPELINE, second, "loop1")
    assert is_same_loop(PIPELINE, PIPELINE, "loop1")
