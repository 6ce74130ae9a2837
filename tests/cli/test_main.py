"""The group of commands: help, errors, colours, completion, and output that leads nowhere."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pipediag.cli import main as cli_main
from pipediag.cli.main import main
from pipediag.errors import ExitStatus, PipediagError
from pipediag.session.store import load_session
from tests.probe import Behaviour, environment, run


def _status(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["pipediag", *arguments])
    with pytest.raises(SystemExit) as ending:
        main()
    assert isinstance(ending.value.code, int)
    return ending.value.code


def _replace_check(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    @click.command()
    def command() -> None:
        raise error

    monkeypatch.setattr(cli_main, "import_module", lambda name: type("M", (), {"command": command}))


@pytest.mark.parametrize("arguments", ["['--help']", "['trace', '--help']"])
def test_help_imports_nothing_heavy(arguments: str) -> None:
    code = (
        "import sys\n"
        f"sys.argv[1:] = {arguments}\n"
        "from pipediag.cli.main import main\n"
        "try:\n main()\n"
        "except SystemExit: pass\n"
        "heavy = {'pandas', 'numpy', 'pydantic', 'tensorflow', 'jinja2', 'rich', 'psutil',\n"
        "         'google.protobuf', 'keras'}\n"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, check=True
    )

    assert done.stderr == "[]\n"
    assert done.stdout


@pytest.mark.parametrize("arguments", [("no-such",), ("check",)])
def test_wrong_use_ends_with_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    seen = run([*PIPEDIAG, *arguments], tmp_path)

    assert seen.status == ExitStatus.USAGE
    assert seen.stdout == ""
    assert "Usage: pipediag" in seen.stderr


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("chek", "Did you mean `check`?"),
        ("train.py", "`pipediag analyze train.py`"),
        ("zzz", "The commands are analyze, show,"),
    ],
)
def test_an_unknown_command_suggests_the_nearest(
    typed: str, meant: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _status(monkeypatch, typed) == ExitStatus.USAGE
    shown = " ".join(capsys.readouterr().err.split())
    assert f"there is no command '{typed}'" in shown
    assert meant in shown


def test_a_known_problem_is_one_line_and_its_status(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _replace_check(monkeypatch, PipediagError("it is so.", ExitStatus.INCONCLUSIVE))

    assert _status(monkeypatch, "check") == ExitStatus.INCONCLUSIVE
    assert capsys.readouterr().err == "pipediag: it is so.\n"


def test_an_unforeseen_error_does_not_look_like_a_failed_gate(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _replace_check(monkeypatch, ZeroDivisionError("unforeseen"))

    assert _status(monkeypatch, "check") == ExitStatus.USAGE
    shown = capsys.readouterr().err
    assert "ZeroDivisionError: unforeseen" in shown
    assert "error in pipediag itself" in shown


SCRIPT = """
import os, sys
kept = open("kept.txt", "w")
print("printed", flush=True)
if sys.stderr:
    print("an error", file=sys.stderr)
kept.write(f"{kept.fileno()} {sys.stdout is None} {sys.stderr is None}")
"""

PIPEDIAG = [sys.executable, "-m", "pipediag"]

ANALYZE = [*PIPEDIAG, "analyze", "--force", "-o", "out"]


def test_an_interrupt_is_said_by_the_usual_status(monkeypatch: pytest.MonkeyPatch) -> None:
    _replace_check(monkeypatch, KeyboardInterrupt())

    assert _status(monkeypatch, "check") == 130


def _shell(command: list[str], redirections: str, directory: Path) -> Behaviour:
    line = f"set -o pipefail; {shlex.join(command)} {redirections}"
    return run(["bash", "-c", line], directory)


@pytest.mark.parametrize("redirections", ["2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_closed_for_the_script(redirections: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    kept = tmp_path / "kept.txt"

    _shell([sys.executable, "train.py"], redirections, tmp_path)
    natively = kept.read_text()
    kept.unlink()
    seen = _shell([*ANALYZE, "train.py"], redirections, tmp_path)

    assert (seen.status, kept.read_text()) == (ExitStatus.DONE, natively)
    assert "Traceback" not in seen.stdout + seen.stderr
    assert load_session(tmp_path / "out").script.outcome == "finished"


def test_a_reader_that_leaves_changes_no_status(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("")

    seen = _shell([*ANALYZE, "train.py"], "2>&1 | true", tmp_path)

    assert seen.status == ExitStatus.DONE
    assert load_session(tmp_path / "out").script.outcome == "finished"


@pytest.mark.parametrize("arguments", [["analyze", "--json", "-o", "out", "train.py"], ["explain"]])
def test_a_document_that_cannot_be_written_is_reported(
    arguments: list[str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("")

    seen = _shell([*PIPEDIAG, *arguments], ">/dev/full", tmp_path)

    assert seen.status == ExitStatus.USAGE
    last = seen.stderr.splitlines()[-1]
    assert last.startswith("pipediag: standard output cannot be written: No space")
    assert "Traceback" not in seen.stderr
