from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.runner import target
from pipediag.runner.analysis import AnalysisRequest, analyse
from pipediag.runner.target import check_script, check_tensorflow
from pipediag.tensorflow_versions import BUILDS, installed_builds


@pytest.fixture(autouse=True)
def in_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"def f(:\n", "script.py:1: not valid Python"),
        (b"x = 1\n  y = 2\n", "script.py:2: not valid Python: unexpected indent"),
        (b"\x7fELF\x02\x01\x01\x00\x00", "script.py"),
        (b"x = '\xff'\n", "script.py"),
        (b"print 'old'\n", "script.py:1"),
    ],
)
def test_what_is_not_python_is_refused_with_its_line(content: bytes, words: str) -> None:
    Path("script.py").write_bytes(content)

    with pytest.raises(PipediagError) as refusal:
        check_script("script.py")

    assert words in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_missing_file() -> None:
    with pytest.raises(PipediagError, match=r"cannot run nothing\.py: No such file"):
        check_script("nothing.py")


def test_directory_without_a_main_module() -> None:
    Path("data").mkdir()

    with pytest.raises(PipediagError, match=r"holds no __main__\.py"):
        check_script("data")


def test_pipe() -> None:
    os.mkfifo("pipe")

    with pytest.raises(PipediagError, match="not a regular file"):
        check_script("pipe")


def test_what_python_can_run_is_accepted() -> None:
    Path("script").write_text("print('no suffix needed')")
    Path("application").mkdir()
    Path("application/__main__.py").write_text("")
    with zipfile.ZipFile("archive.pyz", "w") as archive:
        archive.writestr("__main__.py", "")

    for path in ("script", "application", "archive.pyz"):
        assert check_script(path) is None


def test_a_warning_of_the_compiler_is_left_to_the_script(
    recwarn: pytest.WarningsRecorder,
) -> None:
    Path("script.py").write_text("assert (1, 'always true')\n")

    check_script("script.py")

    assert len(recwarn) == 0


def install(monkeypatch: pytest.MonkeyPatch, **builds: str) -> None:
    monkeypatch.setattr(target, "installed_builds", lambda: builds)


def _ignore(_event: object) -> None:
    """Nobody watches."""


def test_it_is_refused_before_anything_is_run_or_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, tensorflow="2.13.1")
    Path("train.py").write_text("open('ran', 'w')", encoding="utf-8")
    Path("reports/train").mkdir(parents=True)
    Path("reports/train/session.json").write_text("earlier")

    with pytest.raises(PipediagError) as refusal:
        analyse(AnalysisRequest(script="train.py"), _ignore)

    assert str(refusal.value) == (
        "TensorFlow 2.13.1 is too old for pipediag, which measures 2.14 and newer. The script was "
        "not run. Install pipediag beside TensorFlow 2.14 or newer."
    )
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


def test_where_it_shows_only_as_it_is_imported_the_script_runs_as_natively() -> None:
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


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that alone is searched for modules."""
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    return tmp_path


def note(folder: Path, name: str, version: str) -> None:
    """As an installer does."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_each_build_that_is_there_is_found_with_its_version(installed: Path) -> None:
    for name in (*BUILDS, "tensorflow-estimator", "keras"):
        note(installed, name, "2.13.1")
    assert installed_builds() == dict.fromkeys(BUILDS, "2.13.1")


def test_a_package_without_an_installers_note_is_not_known(installed: Path) -> None:
    (installed / "tensorflow").mkdir()
    (installed / "tensorflow" / "__init__.py").write_text("raise SystemExit('imported')")
    assert installed_builds() == {}
