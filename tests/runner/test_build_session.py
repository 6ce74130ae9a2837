from __future__ import annotations

import json
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from pipediag.facts.promise import promised
from pipediag.measures.measured_loop import MAY_LACK
from pipediag.rules.step_overhead import OWN_PYTHON_FIRST
from pipediag.runner.analysis import AnalysisRequest
from pipediag.runner.build_session import (
    NO_RECORDING,
    NOT_WAITED,
    STOPPED,
    EndedRun,
    Recorded,
    _in_each_round,
    diagnose,
    record,
    with_second_run,
    with_trials,
)
from pipediag.runner.output import OutputDirectory, prepare_output
from pipediag.runner.second_run import SecondRun
from pipediag.session.edits import (
    FAILS,
    PASSES_DIFFER,
    RESULTS_DIFFER,
    Edit,
    ExtractStep,
    Insert,
    Replace,
)
from pipediag.session.findings import Patch, also
from pipediag.session.messages import TIMELINE_FILE, ChildResult, RunSettings, encode
from pipediag.session.model import Script, Session
from pipediag.session.recorded_loops import GraphStep
from pipediag.session.recording import Recording
from pipediag.session.store import load_session
from pipediag.session.timeline import HostTrack, Span
from pipediag.session.trials import Combined, Trial, TrialRun
from pipediag.trials.schedule import TrialOutcome
from tests.factories import make_finding, make_keras, make_loop, make_session
from tests.ledgers import make_part, make_run, validation
from tests.recordings import make_block, make_recorded_loop, make_recording, make_window
from tests.records import MS, SCRIPT, make_operation, make_pipeline
from tests.trials.bench import make_edit

UNSAMPLED = HostTrack(pid=100, missing="The host was not sampled.")


def diagnosed(
    folder: Path,
    recording: Recording | None,
    host: HostTrack = UNSAMPLED,
    *,
    epochs: int | None = None,
    **ending: Any,
) -> Session:
    values: dict[str, Any] = {
        "outcome": "stopped",
        "script_status": None,
        "detail": None,
        "started_ns": 1000 * MS,
        "ended_ns": 6000 * MS,
    }
    child = ChildResult(**{**values, **ending})
    settings = RunSettings("train.py", ("--fast",), False, str(folder), epochs=epochs)
    if recording is not None:
        (folder / "recording.json").write_text(json.dumps(asdict(recording)), encoding="utf-8")
    return diagnose(child, host, settings)


def test_trials_that_a_script_did_not_outlive_are_no_part_of_its_run(tmp_path: Path) -> None:
    spans = [
        Span(1, "script", 1000 * MS, None),
        Span(2, "fit", 2000 * MS, None, "fit", SCRIPT, 20),
        Span(3, "steps", 2000 * MS, None, "loop1"),
    ]
    (tmp_path / TIMELINE_FILE).write_bytes(b"".join(map(encode, spans)))
    session = diagnosed(tmp_path, make_recording(), outcome="timed-out", held_ns=4000 * MS)
    assert session.run.total_s == pytest.approx(3.0)
    assert session.run.pipediag_s == pytest.approx(2.0)
    assert session.run.projected_total_s is not None
    assert session.wall_s == 5.0


def test_a_whole_run_becomes_a_session(tmp_path: Path) -> None:
    session = diagnosed(tmp_path, make_recording())
    assert session.verdict.bottleneck == "input"
    assert (session.verdict.line, session.verdict.op_id) == (12, "op2")
    assert session.steps.mean_ms == 10.0
    assert sum(share.percent for share in session.breakdown.values()) == pytest.approx(100.0)
    assert session.breakdown["input_wait"].ms == pytest.approx(7.0)
    assert session.script.args == ["--fast"]
    assert session.wall_s == 5.0
    assert session.host is None
    assert session.host_missing == "The host was not sampled."
    assert session.combined is None
    assert len(session.step_rows) == 70
    assert session.findings


def test_a_child_that_died_before_it_recorded_anything(tmp_path: Path) -> None:
    session = diagnosed(
        tmp_path, None, outcome="killed", script_status=-9, detail="It was killed by SIGKILL."
    )
    assert session.verdict.bottleneck == "inconclusive"
    assert "killed by SIGKILL" in session.verdict.summary
    assert (session.steps, session.steps_missing) == (None, NO_RECORDING)
    assert session.script.status == -9
    assert session.loops == []


NO_LOOP_AT_ALL = make_recording(loops=[], windows=[])


@pytest.mark.parametrize(
    "recording",
    [
        None,
        NO_LOOP_AT_ALL,
        make_recording(windows=[]),
        make_recording(windows=[make_window("baseline", make_block(4))]),
        make_recording(),
    ],
    ids=["no recording", "no loop", "no window", "four steps", "measured"],
)
def test_a_section_of_the_loop_is_there_or_says_why_it_is_not(
    tmp_path: Path, recording: Recording | None
) -> None:
    session = diagnosed(tmp_path, recording)
    for name in MAY_LACK:
        missing = getattr(session, f"{name}_missing")
        assert (getattr(session, name) is None) is (missing is not None), name
        assert missing is None or missing.endswith("."), name


def test_steps_of_a_baseline_that_a_killed_child_has_saved_are_measured(tmp_path: Path) -> None:
    saved = make_window("baseline", make_block(30), complete=False)
    recording = make_recording(windows=[saved], snapshots=[], outcome="running")
    session = diagnosed(tmp_path, recording, outcome="killed", script_status=-9)
    assert session.steps.count == 30
    assert session.input_wait is not None


def test_epochs_that_the_user_gives_reach_the_loop(tmp_path: Path) -> None:
    loop = make_recorded_loop(kind="eager", keras=None, planned_steps=None)
    session = diagnosed(tmp_path, make_recording(loops=[loop]), epochs=12)
    assert [one.planned_rounds for one in session.loops] == [12]


FOLDS = """import tensorflow as tf
for fold in range(5):
    train = tf.data.Dataset.from_tensor_slices(files[fold]).map(parse)
    model.fit(train, epochs=5)
"""


@pytest.mark.parametrize(
    ("text", "rounds", "epochs", "each_round"),
    [
        (FOLDS, 5, 5, True),
        (FOLDS, None, 5, True),
        (FOLDS, 5, 1, False),
        (FOLDS.replace("files[fold]", "files"), 5, 5, False),
    ],
)
def test_a_cache_of_data_that_is_made_for_each_fit_is_known(
    text: str, rounds: int | None, epochs: int, each_round: bool, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text(text)
    op = make_operation("map", "map", file=str(script), line=3)
    keras = make_keras(epochs=epochs)
    loop = make_loop(file=str(script), line=4, keras=keras, planned_rounds=rounds)
    pipeline = make_pipeline(ops=[op], bottleneck_op_id=None)
    edit = Edit("cache", "a cache", (Insert("map", "cache", {}),))
    found = _in_each_round(make_session(loops=[loop], pipeline=pipeline), make_finding(edit=edit))
    assert found.edit.each_round is each_round


def tried(**trials: Trial) -> dict[str, TrialOutcome]:
    run = TrialRun(loop_id="loop_0", consumer="training", budget_s=60.0, used_s=10.0)
    return {"loop_0": TrialOutcome(run=run, trials=trials)}


def trial(state: Any, speedup: float) -> Trial:
    return Trial(state=state, reason=None, speedup=speedup, ci95=(speedup, speedup), blocks=5)


def named(rule: str, **overrides: Any) -> Any:
    return make_finding(rule, edit=make_edit(rule), advice=rule, **overrides)


FITS = "all of its data fits"


@pytest.mark.parametrize(
    ("condition", "found", "left", "effect"),
    [
        ("if so", trial("confirmed", 2.0).but(same_elements=640), None, "same results"),
        (
            also("if so", FITS),
            trial("confirmed", 2.0).but(same_elements=640),
            also(None, FITS),
            "same results",
        ),
        ("if so", trial("confirmed", 2.0).but(same_elements=9), "if so", "not known"),
        (
            "if so",
            Trial(state="not_tried", reason=f"{PASSES_DIFFER}: in element 3."),
            "if so",
            "not safe here",
        ),
    ],
)
def test_what_two_passes_showed_of_a_cache_decides_its_condition(
    condition: str, found: Trial, left: str | None, effect: str
) -> None:
    cache = named("cache", condition=condition, effect_on_results="not known")
    concluded = with_trials(make_session(findings=[cache]), tried(cache=found), "Not reached.")
    finding, *_ = concluded.findings
    assert (finding.condition, finding.effect_on_results) == (left, effect)
    advised = any(finding.advice in step for step in concluded.verdict.next_steps)
    assert advised == (effect != "not safe here")


UP_TO_ORDER: Any = "same up to order or rounding"
MIXES_LESS = Replace("padded", "bucket_by_sequence_length", {"to_longest": True})


@pytest.mark.parametrize(
    ("changes", "found", "condition", "effect"),
    [
        ((), trial("confirmed", 2.0), None, UP_TO_ORDER),
        ((MIXES_LESS,), trial("confirmed", 2.0), "if so", UP_TO_ORDER),
        ((), trial("refuted", 1.0), None, UP_TO_ORDER),
        (
            (),
            Trial(state="not_tried", reason=f"{RESULTS_DIFFER[2]} by up to 0.1."),
            "if so",
            "not safe here",
        ),
        (
            (),
            Trial(state="not_tried", reason="Not reached."),
            "if so",
            UP_TO_ORDER,
        ),
    ],
)
def test_equal_outputs_of_the_model_fulfil_the_condition_of_a_change(
    changes: Any, found: Trial, condition: str | None, effect: str
) -> None:
    cut = make_finding(
        "cut",
        edit=make_edit("cut", check="outputs", changes=changes),
        condition="if so",
        effect_on_results=UP_TO_ORDER,
    )
    concluded = with_trials(make_session(findings=[cut]), tried(cut=found), "Not reached.")
    finding, *_ = concluded.findings
    assert (finding.condition, finding.effect_on_results) == (condition, effect)


@pytest.mark.parametrize(
    ("check", "effect"),
    [("equal", "not safe here"), (None, "not safe here"), ("repeats", "same results")],
)
def test_an_edit_with_which_the_pipeline_fails_is_not_safe(check: Any, effect: str) -> None:
    edit, failed = make_edit("rewrite", check=check), f"{FAILS}: unhashable type."
    found = make_finding("rewrite", edit=edit, effect_on_results="same results")
    trials = tried(rewrite=Trial(state="not_tried", reason=failed))
    finding, *_ = with_trials(make_session(findings=[found]), trials, "Not reached.").findings
    assert finding.effect_on_results == effect


@pytest.mark.parametrize(
    ("rest", "advice"),
    [(" Run several steps.", "Run several steps."), ("", "Apply the confirmed change: try other.")],
)
def test_a_confirmed_change_is_advised_as_it_is(rest: str, advice: str) -> None:
    finding = make_finding(
        "other", status="informative", edit=make_edit("other"), advice=f"{OWN_PYTHON_FIRST}{rest}"
    )
    session = make_session(findings=[finding])
    for found, expected in ((trial("confirmed", 1.5), advice), (trial("refuted", 1.0), None)):
        concluded, *_ = with_trials(session, tried(other=found), "Not reached.").findings
        assert concluded.advice == (expected or finding.advice)


def test_a_step_that_was_timed_in_a_script_that_ended_has_a_measured_gain_of_the_run() -> None:
    """Such a script was promised its upper bound, 8.5x, and obtained 1.5x."""
    pairs = GraphStep(
        file="train.py", line=20, own_ms=[8.0] * 8, other_ms=[2.0 + n / 100 for n in range(8)]
    )
    step = Edit("eager-execution", "a step", (ExtractStep("train.py", 20),))
    found = make_finding("eager-execution", edit=step, part="steps", speedup_at_most=9.0)
    loop = make_loop(kind="eager", graph_step=pairs)
    steps = make_part("steps", 40.0, file=loop.file, line=loop.line, loop_id=loop.id)
    run = make_run(steps, make_part("startup", 20.0), whole_s=60.0)
    before = make_session(loops=[loop], findings=[found], run=run)
    (after,) = with_trials(before, {}, "The script ended.").findings
    assert after.trial.state == "confirmed"
    assert after.for_run.basis == "measured"
    assert after.for_run.speedup < after.trial.speedup


def test_traces_of_many_shapes_count_against_a_timed_step() -> None:
    shapes = {"relaxed": False, "traced_ms": 2_000.0, "shapes": 20, "traces": 25.0}
    times = [2.0 + n / 100 for n in range(8)]
    pairs = GraphStep(file="train.py", line=20, own_ms=[8.0] * 8, other_ms=times, **shapes)
    step = Edit("eager-execution", "a step", (ExtractStep("train.py", 20, (), False),))
    found = make_finding("eager-execution", edit=step, part="steps", speedup_at_most=9.0)
    loop = make_loop(kind="eager", graph_step=pairs)
    steps = make_part("steps", 40.0, file=loop.file, line=loop.line, loop_id=loop.id)
    before = make_session(loops=[loop], findings=[found], run=make_run(steps, whole_s=60.0))
    (after,) = with_trials(before, {}, "The script ended.").findings
    assert (after.trial.once_s, after.trial.once_ci95_s) == (50.0, (40.0, 60.0))
    assert after.for_run.speedup < 1.0


# What evaluates.


def evaluating(**loop: Any) -> Session:
    """A finding on the training, and one on what a validation reads."""
    edit = replace(make_edit("cache"), loop_id="loop_1")
    of_evaluation = make_finding("cached", edit=edit, part="evaluation")
    loops = [make_loop(), validation(**loop)]
    return make_session(findings=[named("large"), of_evaluation], loops=loops)


def of_evaluation(**trials: Trial) -> dict[str, TrialOutcome]:
    run = TrialRun(loop_id="loop_1", consumer="pipeline alone", budget_s=20.0, used_s=10.0)
    return {"loop_1": TrialOutcome(run=run, trials=trials)}


def test_trials_of_an_evaluation_stand_beside_those_of_the_training() -> None:
    outcomes = {
        **tried(large=trial("refuted", 1.0)),
        **of_evaluation(cache=trial("confirmed", 4.0)),
    }
    session = with_trials(evaluating(), outcomes, "Not reached.")
    states = {finding.rule: finding.trial.state for finding in session.findings}

    assert states == {"large": "refuted", "cached": "confirmed"}
    assert session.trials is not None


def test_what_an_evaluation_saves_by_an_edit_of_its_own_is_promised_once() -> None:
    """20 of 100 s are a validation that reads what the training's map makes, and has a cache."""
    faster, large = make_edit("map_0"), make_edit("batch_0")
    cache = replace(make_edit("cache"), loop_id="loop_1")
    found = [
        make_finding("faster", edit=faster, part="steps"),
        make_finding("large", edit=large, part="steps"),
        make_finding("cached", edit=cache, part="evaluation"),
    ]
    session = make_session(
        findings=found,
        loops=[make_loop(), validation(make_pipeline())],
        run=make_run(make_part("evaluation", 20.0, file=SCRIPT, line=20)),
    )
    outcomes = {
        **tried(map_0=trial("confirmed", 1.5), batch_0=trial("confirmed", 1.5)),
        **of_evaluation(cache=trial("confirmed", 2.0)),
    }
    together = Combined(findings=["map_0", "batch_0"], speedup=2.0, ci95=(2.0, 2.0))
    outcomes["loop_0"] = replace(outcomes["loop_0"], combined=together)
    concluded = with_trials(session, outcomes, "Not reached.")
    gains = {one.rule: one.for_run.after_s for one in concluded.findings}

    assert gains["faster"] == pytest.approx(20.0 + 80.0 / 1.5)
    assert concluded.combined.for_run.after_s == pytest.approx(60.0)
    patch = Patch(edits=["map_0", "batch_0", "cache"], diff="--- a\n")
    assert promised(concluded.but(patch=patch)).after_s == pytest.approx(50.0)


SETTINGS = RunSettings("train.py", (), False, "capture")


@pytest.fixture
def output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> OutputDirectory:
    monkeypatch.chdir(tmp_path)
    return prepare_output(Path("out"), force=False)


def session(outcome: Any = "finished", status: int | None = 0, **overrides: Any) -> Session:
    script = Script(path="train.py", args=[], outcome=outcome, status=status)
    findings = [make_finding(edit=make_edit("map"))]
    return make_session(**{"script": script, "findings": findings, **overrides})


def recorded(output: OutputDirectory) -> Recorded:
    child = ChildResult("finished", 0, None, 0, 1)
    request = AnalysisRequest("train.py", source=False)
    run = EndedRun(request, SETTINGS, output, child, UNSAMPLED, None, time.time())
    return Recorded(run, with_trials(session(), {}, NOT_WAITED), session(), None)


def test_options_that_another_analysis_needs_are_kept(output: OutputDirectory) -> None:
    child = ChildResult("raised", 1, "It failed at once.", 0, 1)
    request = AnalysisRequest("train.py", source=False, timeout_s=60.0)
    settings = replace(SETTINGS, capture_directory=str(output.capture), loop=9, steps=40)
    found = record(EndedRun(request, settings, output, child, UNSAMPLED, None, time.time())).session
    assert (found.script.loop, found.script.steps, found.script.timeout_s) == (9, 40, 60.0)
    assert found == load_session(output.path)


def test_what_the_second_run_showed_stands_in_the_session_of_the_first(
    output: OutputDirectory,
) -> None:
    second = SecondRun("It was made.", tried(map=trial("confirmed", 2.0))["loop_0"], cut_short=True)
    concluded = with_second_run(recorded(output), second)

    assert concluded == load_session(output.path)
    assert concluded.findings[0].trial.state == "confirmed"
    assert concluded.trials_missing is None
    assert concluded.script.outcome == "finished"
    assert concluded.script.second_run == "It was made."
    assert concluded.notes == ["It was made.", STOPPED]


def test_a_second_run_that_shows_nothing_takes_nothing_away(output: OutputDirectory) -> None:
    first = recorded(output)
    concluded = with_second_run(first, SecondRun("Nothing was tried."))

    assert concluded.findings[0].trial.reason == f"{NOT_WAITED} Nothing was tried."
    assert concluded.trials_missing == f"{NOT_WAITED} Nothing was tried."
    assert concluded.notes == [*first.session.notes, "Nothing was tried."]
    assert concluded.steps == first.session.steps
