from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.interrupts import INTERRUPTS
from pipediag.runner import analysis
from pipediag.runner.analysis import AnalysisRequest, analyse, check_script, check_tensorflow
from pipediag.runner.build_session import Recorded
from pipediag.session import files
from tests.factories import make_finding, make_session
from tests.probe import environment
from tests.records import make_operation, make_pipeline
from tests.trials.bench import make_edit


@pytest.fixture(autouse=True)
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def script() -> str:
    Path("train.py").write_text("pass\n", encoding="utf-8")
    return "train.py"


def _names(directory: str) -> list[str]:
    return sorted(entry.name for entry in Path(directory).iterdir())


def _ignore(_event: object) -> None:
    """Nobody watches."""


def test_nothing_heavy_delays_the_start_of_the_script() -> None:
    code = (
        "import sys, pipediag.runner.analysis\n"
        "print(sorted({'numpy', 'pydantic', 'psutil', 'rich', 'libcst'} & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    assert subprocess.check_output(command, env=environment(), text=True) == "[]\n"


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


def test_what_the_first_run_measured_is_saved_before_the_second_begins(
    script: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_off(first: Recorded, capture: Path, *_: object, **__: object) -> None:
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
    monkeypatch.setattr("pipediag.runner.build_session.concluded", lambda *_: measured)

    result = analyse(AnalysisRequest(script=script, output=Path("out"), source=source), _ignore)

    (finding,) = result.session.findings
    assert (finding.patch is not None) == source
    assert [each.code for each in result.session.pipeline.ops] == ["pass" if source else None]


@pytest.mark.parametrize(
    ("path", "words"), [("nothing.py", "No such file"), ("pipe", "not a regular file")]
)
def test_what_is_no_script_is_refused(path: str, words: str) -> None:
    os.mkfifo("pipe")
    with pytest.raises(PipediagError, match=f"cannot run {path}: .*{words}"):
        check_script(path)


def install(monkeypatch: pytest.MonkeyPatch, **builds: str) -> None:
    monkeypatch.setattr(analysis, "installed_builds", lambda: builds)


def test_it_is_refused_before_anything_is_run_or_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tensorflow="2.13.1")
    Path("train.py").write_text("open('ran', 'w')", encoding="utf-8")
    Path("reports/train").mkdir(parents=True)
    Path("reports/train/session.json").write_text("earlier")

    with pytest.raises(PipediagError, match=r"TensorFlow 2.13.1 is too old .* 2.14 or newer"):
        analyse(AnalysisRequest(script="train.py"), _ignore)

    assert not Path("ran").exists()
    assert Path("reports/train/session.json").read_text() == "earlier"


@pytest.mark.parametrize(
    "builds",
    [
        {},
        {"tensorflow": "2.14.0"},
        # Which of the two is imported depends on the order in which they came.
        {"tensorflow": "2.13.1", "tensorflow-cpu": "2.18.0"},
        {"tf-nightly": "unknown"},
    ],
)
def test_what_may_be_measured_is_not_refused(
    builds: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, **builds)
    assert check_tensorflow() is None


SCRIPT = """
import atexit
from tensorflow.python.data.ops.dataset_ops import DatasetV2

before = dict(vars(DatasetV2))
from tensorflow.python.eager.polymorphic_function import polymorphic_function

print(vars(DatasetV2) == before, polymorphic_function.Function)
with open("result", "w") as file:
    file.write(str(list(DatasetV2().map(lambda x: 2 * x))))
raise SystemExit(3)
"""
TOY = {
    "framework/versions.py": "__version__ = '2.12.1'",
    "data/ops/dataset_ops.py": (
        "import tensorflow.python.framework.versions\n"
        "class DatasetV2:\n"
        "    def map(self, function):\n"
        "        return map(function, range(3))\n"
    ),
    "eager/polymorphic_function/polymorphic_function.py": "class Function: pass",
}


def test_with_a_tensorflow_that_is_too_old_the_script_runs_as_natively() -> None:
    for name, text in TOY.items():
        file = Path("tensorflow/python") / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    for folder in Path("tensorflow").glob("**/"):
        (folder / "__init__.py").touch()
    Path("train.py").write_text(SCRIPT, encoding="utf-8")

    session = analyse(AnalysisRequest(script="train.py"), _ignore).session

    assert Path("result").read_text() == "[0, 2, 4]"
    assert (session.script.outcome, session.script.status) == ("exited", 3)
    assert session.environment.tensorflow == "2.12.1"
    assert session.verdict.bottleneck == "inconclusive"
    assert "TensorFlow 2.12.1 is too old for pipediag" in session.verdict.summary
    assert session.notes == []
