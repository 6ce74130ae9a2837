"""`pipediag fix`: what it prints, what it writes, and what it refuses."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pipediag.cli.fix import command
from pipediag.errors import ExitStatus, PipediagError
from pipediag.estimates import Estimate
from pipediag.facts.promise import promised
from pipediag.reporters import sections
from pipediag.runner import native_runs, patched_analysis
from pipediag.runner.analysis import AnalysisRequest
from pipediag.runner.native_runs import Said
from pipediag.runner.source_files import with_patches
from pipediag.session.edits import Change, Edit, Insert, SetModel, SetParameters
from pipediag.session.findings import Patch
from pipediag.session.ledger import Run, RunSpan
from pipediag.session.model import Script, Session
from pipediag.session.store import save_session
from pipediag.session.trials import Combined, DroppedEdit, Trial, TrialRun
from pipediag.vocabulary import EffectOnResults, RunScope, ScriptOutcome
from tests.factories import make_finding, make_loop, make_session
from tests.ledgers import make_gain, make_run
from tests.records import make_operation, make_pipeline

TEXT = (
    "class Data:\r\n\tdef map(self, f, num_parallel_calls=1): return self\r\n"
    "ds = Data()\r\nds = ds.map(abs)\r\n"
)
PARALLEL = SetParameters("map", {"num_parallel_calls": 16})
CHANGED = TEXT.replace("map(abs)", "map(abs, num_parallel_calls=16)")
CONFIRMED = Trial(state="confirmed", reason=None, speedup=2.0, ci95=(1.9, 2.1))
LATER = 4e9


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "train.py"
    file.write_bytes(TEXT.encode())
    file.chmod(0o750)
    return file


def session(script: Path, change: Change, speedup: float = 2.0) -> Session:
    op = make_operation("map", "map", file=str(script), line=4)
    gain = make_gain(speedup, 10.0, ci95=(speedup / 1.1, speedup * 1.1))
    edit = Edit("edit", "sixteen parallel calls", (change,))
    return make_session(
        script=Script(path=str(script), args=[], outcome="stopped"),
        pipeline=make_pipeline(ops=[op], bottleneck_op_id=None),
        findings=[make_finding(edit=edit, trial=CONFIRMED, for_run=gain)],
    )


def saved(script: Path) -> Path:
    return save_session(with_patches(session(script, PARALLEL), LATER), script.parent)


def fix(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(each) for each in arguments])


def test_names_the_calls_whose_pipelines_get_the_change_unmeasured(script: Path) -> None:
    text = "def make(x):\n    return read(x).map(abs)\n\n\nfit(make(a))\npreview(make(b))\n"
    script.write_text(text, encoding="utf-8")
    made = session(script, Insert("map", "cache"))
    op = make_operation("map", "map", file=str(script), line=2)
    made = made.but(pipeline=make_pipeline(ops=[op], bottleneck_op_id=None))
    result = fix(save_session(with_patches(made, LATER), script.parent))
    assert "+    return read(x).map(abs).cache()" in result.output
    assert (
        "`make` is called in train.py:5 and train.py:6: all pipelines that it makes get"
        in result.output
    )


@pytest.mark.parametrize("link", [False, True])
def test_a_patch_of_files_outside_the_scripts_directory_is_applied_where_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, link: bool
) -> None:
    """The script is `../train.py`, or a link to it, and imports by `sys.path.append("..")`."""
    run, other = tmp_path / "run", tmp_path / "common" / "data.py"
    for folder in (run, other.parent):
        folder.mkdir()
    monkeypatch.chdir(run)
    script = tmp_path / "train.py"
    for file in (script, other):
        file.write_bytes(TEXT.encode())
    named = run / "../train.py"
    if link:
        (named := run / "link.py").symlink_to("../train.py")
    made = session(named, PARALLEL)
    there = make_operation("there", "map", file=f"{run}/../common/data.py", line=4)
    second = make_finding(
        "other", edit=Edit("other", "a cache", (Insert("there", "cache"),)), trial=CONFIRMED
    )
    ops = [*made.ops, there]
    made = made.but(
        script=made.script.but(path="../train.py", directory=str(run)),
        pipeline=make_pipeline(ops=ops, bottleneck_op_id=None),
        findings=[*made.findings, second],
        combined=Combined(speedup=2.0, ci95=(1.9, 2.1), findings=["edit", "other"]),
    )
    path = save_session(with_patches(made, LATER), run)
    result = fix(path)
    assert f"relative to {tmp_path}." in result.stderr
    git = ["git", "apply"]
    subprocess.run(git, cwd=tmp_path, input=result.stdout_bytes, check=True, timeout=60)
    assert script.read_bytes() == CHANGED.encode()
    assert b"cache()" in other.read_bytes()
    for file in (script, other):
        file.write_bytes(TEXT.encode())
    assert fix(path, "--apply").exit_code == 0
    assert script.read_bytes() == CHANGED.encode()


def test_applies_what_it_printed_and_keeps_mode_and_line_ends(script: Path) -> None:
    result = fix(saved(script), "--apply")
    assert result.exit_code == 0
    assert script.read_bytes() == CHANGED.encode()
    assert stat.S_IMODE(script.stat().st_mode) == 0o750
    assert sorted(each.name for each in script.parent.iterdir()) == ["session.json", "train.py"]
    assert "changed" in result.stderr


@pytest.mark.parametrize("allowed", [True, False])
def test_a_changed_file_keeps_its_owner_where_that_is_allowed(
    script: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    given: list[tuple[int, int]] = []

    def chown(_: object, user: int, group: int) -> None:
        given.append((user, group))
        if not allowed:
            raise OSError(errno.EPERM, "not permitted")

    owner = script.stat().st_uid, script.stat().st_gid
    monkeypatch.setattr(os, "chown", chown)
    assert fix(saved(script), "--apply").exit_code == 0
    assert given == [owner]
    assert script.read_bytes() == CHANGED.encode()
    assert stat.S_IMODE(script.stat().st_mode) == 0o750


@pytest.mark.parametrize(("scope", "together"), [("run", True), ("epoch", False)])
def test_the_second_analysis_has_the_options_of_the_first_and_multiplies_only_what_is_alike(
    script: Path, monkeypatch: pytest.MonkeyPatch, scope: RunScope, together: bool
) -> None:
    asked: list[AnalysisRequest] = []

    def analyse(request: AnalysisRequest, _: object) -> SimpleNamespace:
        asked.append(request)
        gains = [one.but(for_run=one.for_run.but(scope=scope)) for one in first.findings]
        return SimpleNamespace(session=first.but(findings=gains))

    monkeypatch.setattr(patched_analysis, "analyse", analyse)
    first = with_patches(session(script, PARALLEL), LATER)
    trials = TrialRun(
        loop_id="loop_0", consumer="training", budget_s=60.0, given_s=120.0, used_s=9.0
    )
    options = {"steps": 30, "timeout_s": 600.0, "second_run": "It was made."}
    run = make_run(epochs_planned=20, epochs_given=True)
    first = first.but(
        trials=trials, script=first.script.but(**options), run=run, device_memory_bytes=1 << 34
    )
    result = fix(save_session(first, script.parent), "--again")
    assert result.exception is None
    (one,) = asked
    assert (one.epochs, one.rerun, one.budget_s) == (20, True, 120.0)
    assert (one.steps, one.timeout_s, one.device_memory_bytes) == (30, 600.0, 1 << 34)
    assert ("Together" in result.stderr) is together


@pytest.mark.parametrize(("line", "moved"), [(2, 2), (4, 5), (3, None), (None, None)])
def test_the_line_of_the_loop_is_the_one_that_it_has_in_the_patched_file(
    script: Path, line: int | None, moved: int | None
) -> None:
    """A line is added before the last one, and the third one is another."""
    script.write_text("a\nb\nc\nd\n", encoding="utf-8")
    made = session(script, PARALLEL)
    loops = [make_loop(file=f"{script.parent}/../{script.parent.name}/train.py", line=line)]
    made = made.but(script=made.script.but(loop=line), loops=loops)
    contents = {str(script): b"a\nb\nx\ny\nd\n"}
    assert patched_analysis.loop_line(made, contents) == moved
    assert patched_analysis.loop_line(made, {}) == line


@pytest.mark.parametrize("broken", ["report", "directory"])
def test_what_keeps_the_patched_script_from_being_analysed_is_said(
    script: Path, broken: str
) -> None:
    made = with_patches(session(script, PARALLEL), LATER)
    if broken == "directory":
        gone = made.script.but(directory=str(script.parent / "gone"), path="train", module=True)
        made = made.but(script=gone)
    else:
        (script.parent / "again").write_text("A file is in the way.", encoding="utf-8")
    result = fix(save_session(made, script.parent), "--again", "--apply")
    assert isinstance(result.exception, PipediagError)
    assert script.read_bytes() == TEXT.encode()


def analysed_again(
    script: Path, monkeypatch: pytest.MonkeyPatch, first: Session, second: Script
) -> Result:
    """`fix --again --apply` where the run of the patched script ends as `second` says."""
    found = first.but(script=second, findings=[], patch=None)
    monkeypatch.setattr(patched_analysis, "analyse", lambda *_: SimpleNamespace(session=found))
    return fix(save_session(first, script.parent), "--again", "--apply")


@pytest.mark.parametrize("outcome", ["raised", "interrupted", "finished", "timed-out"])
def test_nothing_is_changed_where_the_patched_script_failed_or_was_interrupted(
    script: Path, monkeypatch: pytest.MonkeyPatch, outcome: ScriptOutcome
) -> None:
    """Both sessions have steps: a script that ran out of time has shown enough."""
    first = with_patches(session(script, PARALLEL), LATER)
    status = 1 if outcome in ("raised", "exited") else None
    ended = first.script.but(outcome=outcome, status=status)
    result = analysed_again(script, monkeypatch, first, ended)
    well = outcome in ("finished", "timed-out")
    assert script.read_bytes() == (CHANGED if well else TEXT).encode()
    if outcome in ("raised", "exited"):
        assert isinstance(result.exception, PipediagError)
        assert result.exception.status == ExitStatus.SCRIPT_FAILED
    assert (result.exit_code == 0) is well


def test_a_script_that_ended_so_without_the_patch_has_not_failed_by_it(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = with_patches(session(script, PARALLEL), LATER)
    first = first.but(script=first.script.but(outcome="exited", status=1))
    assert analysed_again(script, monkeypatch, first, first.script).exit_code == 0
    assert script.read_bytes() == CHANGED.encode()


def test_ctrl_c_before_the_files_are_written_leaves_them(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = saved(script)
    monkeypatch.setattr("pipediag.cli.fix.INTERRUPTS", SimpleNamespace(came=True))
    monkeypatch.setattr("pipediag.cli.fix._verify", lambda *_: ExitStatus.DONE)
    assert fix(path, "--verify", "--apply").exit_code != 0
    assert script.read_bytes() == TEXT.encode()


def test_an_edited_file_is_not_touched(script: Path) -> None:
    path = saved(script)
    script.write_bytes(TEXT.encode() + b"# mine\r\n")
    result = fix(path, "--apply")
    assert isinstance(result.exception, PipediagError)
    assert "has been edited since" in str(result.exception)
    assert script.read_bytes().endswith(b"# mine\r\n")


def test_a_session_whose_patch_says_something_else_is_not_applied(script: Path) -> None:
    path = saved(script)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("-ds = ds.map(abs)", "-ds = something()"), encoding="utf-8")
    result = fix(path, "--apply")
    assert "change the files differently" in str(result.exception)
    assert script.read_bytes() == TEXT.encode()


def costly(script: Path, change: Change | None = None, *, beside: bool = False) -> Path:
    """Parallel calls make the run longer; the others, where there are any, do not."""
    made = session(script, change or PARALLEL, speedup=0.8)
    longer = made.findings[0].but(rule="too-costly")
    helps = session(script, Insert("map", "cache")).findings[0]
    helps = helps.but(edit=replace(helps.edit, id="other"), rule="helps")
    findings = [longer, helps] if beside else [longer]
    made = with_patches(made.but(findings=findings), LATER)
    return save_session(made, script.parent)


def test_what_makes_the_run_longer_is_left_out_and_said(script: Path) -> None:
    result = fix(costly(script), "--apply")
    assert (result.exit_code, result.stdout) == (0, "")
    said = "not the whole run: 0.80x [0.73, 0.88] for the run (10.0 s to 12.5 s)."
    assert said in result.stderr
    assert "--with too-costly" in result.stderr
    assert script.read_bytes() == TEXT.encode()


def test_it_is_written_where_its_rule_is_named(script: Path) -> None:
    result = fix(costly(script), "--with", "too-costly", "--apply")
    assert "-ds = ds.map(abs)" in result.stdout
    assert "Not in the patch" not in result.stderr
    assert script.read_bytes() == CHANGED.encode()


@pytest.mark.parametrize("named", [(), ("--with", "too-costly")])
def test_what_no_patch_can_hold_is_shown_as_code_and_not_promised(
    script: Path, named: tuple[str, ...]
) -> None:
    result = fix(costly(script, SetModel({"dtype_policy": "mixed_bfloat16"})), *named)
    assert (result.exit_code, result.stdout) == (0, "")
    assert "in all the same" not in result.stderr
    assert ("not the whole run: 0.80x" in result.stderr) == (not named)
    assert result.stderr.count("The line that makes it was not recorded") == 1
    assert result.stderr.count("set_global_policy(") == 1


def test_the_others_are_written_without_it(script: Path) -> None:
    path = costly(script, beside=True)
    assert "+ds = ds.cache()" in fix(path).stdout
    both = fix(path, "--with", "too-costly").stdout.splitlines()
    changed = [line for line in both if line.startswith(("-ds", "+ds"))]
    assert changed == [
        "-ds = ds.map(abs)",
        "+ds = ds.map(abs, num_parallel_calls=16)",
        "+ds = ds.cache()",
    ]


def test_what_was_not_tried_with_the_others_is_said_with_its_reason(script: Path) -> None:
    made = session(script, PARALLEL)
    cache = session(script, Insert("map", "cache")).findings[0]
    cache = cache.but(rule="missing-cache", edit=replace(cache.edit, id="cache"))
    dropped = [DroppedEdit(edit="cache", reason="No time left.")]
    combined = Combined(speedup=2.0, ci95=(1.9, 2.1), findings=["edit"], dropped=dropped)
    made = made.but(findings=[*made.findings, cache], combined=combined)
    path = save_session(with_patches(made, LATER), script.parent)
    result = fix(path)
    assert "cache" not in result.stdout
    assert "No time left." in result.stderr
    assert "--with missing-cache" in result.stderr
    assert "+ds = ds.cache()" in fix(path, "--with", "missing-cache").stdout


def test_a_rule_of_which_nothing_was_confirmed_is_refused(script: Path) -> None:
    result = fix(costly(script), "--with", "cache")
    assert isinstance(result.exception, PipediagError)
    assert "Rules that can be named: too-costly." in str(result.exception)


def test_verifies_by_running_both(
    script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From elsewhere, a module whose map sleeps: in parallel the run is ten times as fast."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project / "trainer", elsewhere):
        folder.mkdir(parents=True)
    sleep = "__import__('time').sleep(1.5 / num_parallel_calls); return self"
    data = project / "trainer" / "data.py"
    text = TEXT.replace("return self", sleep).encode()
    data.write_bytes(text)
    (project / "trainer" / "train.py").write_text("import trainer.data\n", encoding="utf-8")
    made = session(data, PARALLEL, speedup=20.0)
    ran = Script(
        path="trainer.train", args=[], module=True, directory=str(project), outcome="stopped"
    )
    made = with_patches(made.but(script=ran), LATER)
    before = sorted(project.rglob("*"))
    monkeypatch.chdir(elsewhere)
    result = fix(save_session(made, tmp_path), "--verify", "--rounds", "2")
    assert "Promised: 20" in result.stderr
    assert "Obtained:" in result.stderr
    # One seeded run is enough to see that there are no results, and two rounds of both follow.
    assert result.stderr.count("ran ") == 1 + 2 * 2
    # The seeded runs end early: the files of the script are those of a full run in the end.
    assert result.stderr.index("seeded") < result.stderr.index("ran -m trainer.train")
    assert result.exit_code in (0, 1)
    assert data.read_bytes() == text
    left = [path for path in project.rglob("*") if "__pycache__" not in path.parts]
    assert (sorted(left), list(elsewhere.iterdir())) == (before, [])


NOTHING = Said("Batches and losses were not compared.")


def test_a_script_and_a_module_that_are_links_are_replaced(tmp_path: Path) -> None:
    """Links with other names than their files: each is known by one path, and run by another."""
    for name in ("train", "data"):
        (tmp_path / f"{name}_v3.py").write_text(f"print('{name} as it was')\n")
        (tmp_path / f"{name}.py").symlink_to(f"{name}_v3.py")
    (tmp_path / "train_v3.py").write_text("import data\n")
    contents = {
        str(tmp_path / "train.py"): b"import sys, data\nsys.exit('patched script')\n",
        str(tmp_path / "data_v3.py"): b"import sys\nprint('patched module', file=sys.stderr)\n",
    }
    made = make_session(
        script=Script(path="train.py", args=[], directory=str(tmp_path), outcome="stopped")
    )
    with (
        native_runs.versions(made, contents) as (_, patched),
        pytest.raises(PipediagError, match=r"patched module\npatched script"),
    ):
        native_runs.wall_s(patched, None, 60.0)


def verified(
    monkeypatch: pytest.MonkeyPatch,
    path: Path,
    found: Estimate,
    *said: Said,
    options: Sequence[str] = (),
) -> Result:
    """`fix --verify --apply` where the runs obtain that, and show that of batches and losses."""
    monkeypatch.setattr(native_runs, "compared", lambda *_, **_tell: list(said) or [NOTHING])
    monkeypatch.setattr(native_runs, "obtained", lambda *_, **_tell: (found, 10.0))
    return fix(path, "--verify", "--apply", *options)


UNSURE = Estimate(1.1, 0.7, 1.7, 3)


def test_a_promise_for_1000_steps_is_checked_for_the_whole_run(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that the session saw comes once, so nothing of this run gets any faster."""
    made = session(script, PARALLEL, speedup=20.0)
    (finding,) = made.findings
    gain = finding.for_run.but(scope="1000_steps")
    once = RunSpan(part="startup", start_ms=0.0, duration_ms=3600e3)
    ledger = Run(scope="1000_steps", total_s=3600.0, pipediag_s=0.0, parts=[], spans=[once])
    findings = [finding.but(for_run=gain)]
    made = with_patches(made.but(findings=findings, run=ledger), LATER)
    result = verified(monkeypatch, save_session(made, script.parent), UNSURE)
    assert "for 1,000 steps" in result.stderr
    assert "took longer than all of it does now" in result.stderr
    assert result.exit_code == ExitStatus.INCONCLUSIVE.value


@pytest.mark.parametrize("basis", ["at most", None])
@pytest.mark.parametrize(
    ("found", "status"),
    [
        (Estimate(1.3, 1.1, 1.5, 3), ExitStatus.DONE),
        (Estimate(0.6, 0.5, 0.7, 3), ExitStatus.GATE_FAILED),
        (UNSURE, ExitStatus.INCONCLUSIVE),
    ],
)
def test_without_a_measured_promise_the_patch_has_to_be_faster(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    basis: str | None,
    found: Estimate,
    status: ExitStatus,
) -> None:
    """An upper bound is no promise: less is no failure, and it is not kept by any interval."""
    made = session(script, PARALLEL, speedup=9.0)
    (finding,) = made.findings
    gain = make_gain(9.0, 10.0, ci95=None, basis=basis) if basis else None
    made = with_patches(made.but(findings=[finding.but(for_run=gain)]), LATER)
    result = verified(monkeypatch, save_session(made, script.parent), found)
    assert result.exit_code == status.value
    changed = status is ExitStatus.DONE
    assert script.read_bytes() == (CHANGED if changed else TEXT).encode()


NARROW, WIDE = (1.4, 1.6), (0.8, 2.2)


@pytest.mark.parametrize(
    ("ci95", "found", "status"),
    [
        (NARROW, UNSURE, ExitStatus.DONE),
        (NARROW, Estimate(3.0, 2.8, 3.2, 3), ExitStatus.DONE),
        (NARROW, Estimate(1.2, 1.1, 1.3, 3), ExitStatus.GATE_FAILED),
        (WIDE, Estimate(1.2, 1.1, 1.3, 3), ExitStatus.DONE),
        (WIDE, Estimate(0.9, 0.85, 0.95, 3), ExitStatus.GATE_FAILED),
    ],
)
def test_a_measured_promise_is_kept_where_intervals_overlap_and_the_run_is_not_slower(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    ci95: tuple[float, float],
    found: Estimate,
    status: ExitStatus,
) -> None:
    made = session(script, PARALLEL)
    (finding,) = made.findings
    gain = make_gain(1.5, 10.0, ci95=ci95)
    made = with_patches(made.but(findings=[finding.but(for_run=gain)]), LATER)
    result = verified(monkeypatch, save_session(made, script.parent), found)
    assert result.exit_code == status.value


SAME, REORDERS, SMALLER = (
    "same results",
    "same up to order or rounding",
    "changes a hyper-parameter",
)


@pytest.mark.parametrize(
    ("effect", "batches", "losses", "status"),
    [
        (SAME, "reordered", None, ExitStatus.DONE),
        (SAME, "different", None, ExitStatus.GATE_FAILED),
        (SAME, None, "different", ExitStatus.GATE_FAILED),
        # Random draws go to other elements, and the first files that are read may be others.
        (REORDERS, "different", "equal", ExitStatus.DONE),
        (REORDERS, "different", "different", ExitStatus.INCONCLUSIVE),
        (REORDERS, "equal", "different", ExitStatus.GATE_FAILED),
        ("not known", "different", "different", ExitStatus.GATE_FAILED),
        (SMALLER, "different", "different", ExitStatus.DONE),
    ],
)
def test_a_patch_that_changes_other_results_than_it_may_is_not_applied(
    script: Path,
    monkeypatch: pytest.MonkeyPatch,
    effect: EffectOnResults,
    batches: Any,
    losses: Any,
    status: ExitStatus,
) -> None:
    made = session(script, PARALLEL)
    (finding,) = made.findings
    made = with_patches(made.but(findings=[finding.but(effect_on_results=effect)]), LATER)
    path, said = save_session(made, script.parent), (Said("", batches), Said("", losses))
    options = ["--with", finding.rule] if effect == SMALLER else []
    result = verified(monkeypatch, path, Estimate(2.0, 1.9, 2.1, 3), *said, options=options)
    assert result.exit_code == status.value
    changed = status is ExitStatus.DONE
    assert script.read_bytes() == (CHANGED if changed else TEXT).encode()


def test_what_both_analyses_may_change_counts(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = with_patches(session(script, PARALLEL), LATER)
    corrects = [first.findings[0].but(effect_on_results="corrects results")]
    for second, status in ((first, 1), (first.but(findings=corrects), 0)):
        script.write_bytes(TEXT.encode())
        ran = SimpleNamespace(session=second)
        monkeypatch.setattr(patched_analysis, "analyse", lambda *_, ran=ran: ran)
        said = (Said("", "different"), Said("", "different"))
        path = save_session(first, script.parent)
        result = verified(monkeypatch, path, Estimate(9.0, 8.9, 9.1, 3), *said, options=["--again"])
        assert (result.exit_code, result.exception is None) == (status, status == 0)


@pytest.mark.parametrize("edited", [True, False])
def test_verified_files_are_changed_only_if_they_gain_and_nobody_edited_them(
    script: Path, monkeypatch: pytest.MonkeyPatch, edited: bool
) -> None:
    path = saved(script)

    def verified(*_: object) -> ExitStatus:
        if edited:
            script.write_bytes(TEXT.encode() + b"# mine\r\n")
        return ExitStatus.DONE if edited else ExitStatus.GATE_FAILED

    monkeypatch.setattr("pipediag.cli.fix._verify", verified)
    result = fix(path, "--verify", "--apply")
    assert b"ds.map(abs)\r\n" in script.read_bytes()
    if edited:
        assert isinstance(result.exception, PipediagError)
        assert b"# mine" in script.read_bytes()
    else:
        assert result.exit_code == ExitStatus.GATE_FAILED.value


def test_a_script_that_fails_verifies_nothing(script: Path) -> None:
    script.write_bytes(TEXT.encode() + b"raise SystemExit(5)\r\n")
    result = fix(saved(script), "--verify", "--apply")
    assert result.exception.status == ExitStatus.SCRIPT_FAILED
    assert b"ds.map(abs)\r\n" in script.read_bytes()


@pytest.mark.parametrize(
    ("part", "line", "speedup"), [("evaluation", 9, 5.0), ("steps", 9, None), ("steps", None, None)]
)
def test_gains_of_a_loop_and_of_an_evaluation_are_promised_together(
    script: Path, part: str, line: int | None, speedup: float | None
) -> None:
    made = session(script, PARALLEL)
    (first,) = made.findings
    gain = make_gain(10 / 7, 10.0, ci95=None)
    other = first.but(part=part, line=line, for_run=gain, edit=Edit("other", "other", ()))
    patch = Patch(edits=["edit", "other"], diff="--- a\n")
    made = made.but(findings=[first, other], patch=patch)
    found = promised(made)
    assert (found and found.speedup) == (speedup and pytest.approx(speedup))
    told = [name for name, *_ in sections.answer(made)]
    assert ("Patch" in told) == (speedup is not None)
