from __future__ import annotations

import errno
import os
import threading
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.interrupts import INTERRUPTS
from pipediag.runner import analysis
from pipediag.runner.analysis import FOR_TRIALS, NEEDED, AnalysisRequest, EarlyImports, analyse
from pipediag.runner.output import prepare_output
from pipediag.runner.second_run import FirstRun
from pipediag.session import files
from pipediag.session.edits import Edit
from pipediag.session.model import Session
from tests.factories import make_finding, make_loop, make_session
from tests.records import make_operation, make_pipeline
from tests.trials.bench import make_edit


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text("pass\n")
    return "train.py"


def _names(directory: str) -> list[str]:
    return sorted(entry.name for entry in Path(directory).iterdir())


def _ignore(_event: object) -> None:
    """Nobody watches."""


def test_a_report_that_cannot_be_written_keeps_the_session(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise PipediagError("Could not write report.html: the disk is full.")

    monkeypatch.setattr("pipediag.reporters.write_all", full)

    result = analyse(AnalysisRequest(script=script, output=Path("out")), _ignore)

    assert result.report_failure is not None
    assert "the disk is full" in result.report_failure
    assert "pipediag show out" in result.report_failure
    assert _names("out") == ["session.json"]


def test_a_session_that_cannot_be_written_keeps_the_recording(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.tempfile, "mkstemp", full)

    with pytest.raises(PipediagError, match="No space left") as refusal:
        analyse(AnalysisRequest(script=script, output=Path("out")), _ignore)

    (capture,) = Path("out").iterdir()
    assert str(capture) in "".join(refusal.value.__notes__)
    assert (capture / "recording.json").is_file()


def test_a_module_that_is_not_there_leaves_the_earlier_report_in_place(script: str) -> None:
    request = AnalysisRequest(script=script, output=Path("out"))
    analyse(request, _ignore)
    before = _names("out")

    with pytest.raises(PipediagError, match="No module named"):
        analyse(AnalysisRequest(script="missing", module=True, output=Path("out")), _ignore)

    assert _names("out") == before
    assert _names(".") == ["out", "train.py"]


@pytest.mark.parametrize("later", ["", "\nPath('reports').mkdir()"])
def test_a_script_may_remove_the_directory_of_reports(script: str, later: str) -> None:
    removes = "import shutil\nfrom pathlib import Path\nshutil.rmtree('reports')"
    Path(script).write_text(removes + later, encoding="utf-8")

    result = analyse(AnalysisRequest(script=script), _ignore)

    assert result.session.script.outcome == "finished"
    assert {"session.json", "report.html", "steps.csv"} <= set(_names("reports/train"))


def test_a_directory_that_another_analysis_writes_to_is_refused_before_the_run(script: str) -> None:
    Path(script).write_text("open('ran', 'w')", encoding="utf-8")
    other = prepare_output(Path("reports/train"), force=False)

    with pytest.raises(PipediagError, match="another analysis is writing to"):
        analyse(AnalysisRequest(script=script), _ignore)

    assert not Path("ran").exists()
    other.release()
    analyse(AnalysisRequest(script=script, force=True), _ignore)
    assert Path("ran").exists()


def test_what_the_first_run_measured_is_saved_before_the_second_begins(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(first: FirstRun, capture: Path, *_: object, **__: object) -> None:
        assert first.session.script.outcome == "finished"
        assert capture.is_dir()
        raise KeyboardInterrupt

    monkeypatch.setattr("pipediag.runner.second_run.second_run", broken_off)
    with pytest.raises(KeyboardInterrupt):
        analyse(AnalysisRequest(script=script, output=Path("out"), rerun=True), _ignore)

    assert _names("out") == ["session.json"]


def test_ctrl_c_before_the_script_is_run_puts_everything_back(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(script).write_text("open('ran', 'w')", encoding="utf-8")
    analyse(AnalysisRequest(script=script, output=Path("out")), _ignore)
    Path("ran").unlink()
    before = _names("out")
    monkeypatch.setattr(INTERRUPTS, "_count", 1)
    with pytest.raises(KeyboardInterrupt):
        analyse(AnalysisRequest(script=script, output=Path("out")), _ignore)

    assert not Path("ran").exists()
    assert _names("out") == before
    assert not Path("out.1").exists()


def test_ctrl_c_after_the_first_run_makes_no_second_one(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_the_report(*_: object) -> list[Edit]:
        monkeypatch.setattr(INTERRUPTS, "_count", 1)
        return [make_edit("op")]

    monkeypatch.setattr("pipediag.runner.second_run.edits_for_second_run", in_the_report)
    monkeypatch.setattr(Session, "diagnosed_loop", lambda _: make_loop())
    result = analyse(AnalysisRequest(script=script, output=Path("out"), rerun=True), _ignore)

    assert "report.html" in _names("out")
    assert "Ctrl-C" in (result.session.script.second_run or "")


def test_without_anything_to_try_a_script_is_run_once(script: str) -> None:
    Path(script).write_text("open('runs', 'a').write('run ')", encoding="utf-8")
    result = analyse(AnalysisRequest(script=script, output=Path("out"), rerun=True), _ignore)

    assert Path("runs").read_text() == "run "
    assert result.session.script.second_run is None
    assert not [name for name in _names("out") if name.startswith(".")]


@pytest.mark.parametrize("source", [True, False])
def test_a_session_holds_source_and_patches_unless_told_otherwise(
    script: str, monkeypatch: pytest.MonkeyPatch, source: bool
) -> None:
    op = make_operation("map", "map", file=str(Path(script).resolve()), line=1, code="pass")
    measured = make_session(
        pipeline=make_pipeline(ops=[op], bottleneck_op_id=None),
        findings=[make_finding(edit=make_edit("map"))],
    )
    monkeypatch.setattr("pipediag.runner.build_session.diagnose", lambda *_: measured)

    result = analyse(AnalysisRequest(script=script, output=Path("out"), source=source), _ignore)

    (finding,) = result.session.findings
    assert (finding.patch is not None) == source
    assert result.session.pipeline is not None
    assert [each.code for each in result.session.pipeline.ops] == ["pass" if source else None]


def test_every_module_that_is_named_can_be_imported() -> None:
    for name in (*NEEDED, *FOR_TRIALS):
        analysis.import_module(name)


def test_after_a_stop_no_further_module_is_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    first_is_in, go_on = threading.Event(), threading.Event()

    def imported(name: str) -> None:
        begun.append(name)
        first_is_in.set()
        go_on.wait(10)

    monkeypatch.setattr(analysis, "import_module", imported)
    early = EarlyImports(trials=True)
    early.start()
    assert first_is_in.wait(10)
    early.stop()
    go_on.set()
    early.close()
    assert begun == [NEEDED[0]]


def test_what_trials_need_is_left_out_where_there_are_none(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[str] = []
    monkeypatch.setattr(analysis, "import_module", begun.append)
    early = EarlyImports(trials=False)
    early.start()
    early.join()
    assert begun == list(NEEDED)


def test_what_never_began_is_closed_all_the_same() -> None:
    EarlyImports(trials=True).close()
