"""`pipediag analyze` as a process: what it prints, writes and ends with."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from click.testing import CliRunner

from pipediag.cli.analyze import analyze_status, command, script_arguments
from pipediag.errors import ExitStatus, PipediagError
from pipediag.runner.analysis import AnalysisRequest
from tests.probe import Behaviour, run

OWN = ["--steps", "-q", "--json"]


@pytest.mark.parametrize(
    ("given", "passed", "noted"),
    [
        ((), (), None),
        (("--", "--lr", "--"), ("--lr", "--"), None),
        (("--", "--", "-q"), ("--", "-q"), None),
        (("a", "--", "b"), ("a", "--", "b"), None),
        (("--lr", "-q", "--json"), ("--lr", "-q", "--json"), "-q"),
        (("--", "--steps", "60"), ("--steps", "60"), None),
    ],
)
def test_arguments_go_to_the_script_untouched(
    given: tuple[str, ...], passed: tuple[str, ...], noted: str | None
) -> None:
    args, note = script_arguments(given, OWN)

    assert args == passed
    assert (note is None) if noted is None else note.startswith(f"{noted} ")


def _analyze(directory: Path, *arguments: str) -> Behaviour:
    return run([sys.executable, "-m", "pipediag", "analyze", *arguments], directory)


def _session(directory: Path) -> dict[str, object]:
    content = json.loads((directory / "session.json").read_text())
    assert isinstance(content, dict)
    return content


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.py"], "cannot run missing.py: No such file or directory"),
        (["-m", "no_such_module"], "No module named no_such_module"),
        (["-o", "good.py/x", "good.py"], "cannot write to the output directory"),
        (["--rerun", "--budget", "0", "good.py"], "--rerun is for trials, and --budget 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_bad_input_is_one_clear_line_and_leaves_nothing(
    arguments: list[str], words: str, tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "good.py").write_text("print('ran')")
    before = sorted(entry.name for entry in tmp_path.iterdir())

    seen = _analyze(tmp_path, *arguments)

    assert (seen.status, seen.stdout) == (ExitStatus.USAGE, "")
    assert words in seen.stderr
    assert seen.stderr.startswith("pipediag: ")
    assert seen.stderr.count("\n") == 1
    left = {entry.name for entry in tmp_path.iterdir()} - {"reports"}
    assert sorted(left) == before
    assert not list((tmp_path / "reports").glob("*"))


def test_json_is_alone_on_standard_output(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('from the script')")

    seen = _analyze(tmp_path, "--json", "train.py")

    assert json.loads(seen.stdout) == _session(tmp_path / "reports/train")
    assert "from the script\n" in seen.stderr


def test_an_earlier_report_is_kept_aside_unless_forced(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import sys; sys.exit(int(sys.argv[1]))")

    _analyze(tmp_path, "-q", "train.py", "1")
    second = _analyze(tmp_path, "train.py", "0")
    _analyze(tmp_path, "-q", "--force", "train.py", "5")

    assert "pipediag compare" in second.stderr
    assert "reports/train.1" in second.stderr
    scripts = [_session(tmp_path / name)["script"] for name in ("reports/train.1", "reports/train")]
    assert [script["status"] for script in scripts if isinstance(script, dict)] == [1, 5]


def test_a_script_that_fails_too_early(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os; os.kill(os.getpid(), 9)")

    seen = _analyze(tmp_path, "train.py")

    assert seen.status == ExitStatus.SCRIPT_FAILED
    last = seen.stderr.splitlines()[-1]
    assert last.startswith("pipediag: ")
    assert "its own status: -9)" in last
    assert (tmp_path / "reports/train/session.json").is_file()


def test_a_gate_that_cannot_decide_is_configured_where_the_script_is(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('no training here')")
    (tmp_path / "pyproject.toml").write_text("[tool.pipediag]\nallow-inconclusive = true\n")

    assert _analyze(tmp_path, "--fail-on", "warn", "train.py").status == ExitStatus.DONE


def test_errors_of_ours_in_page_and_summary_cost_neither_tables_nor_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> NoReturn:
        raise KeyError("nobody")

    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text("print('ran')", encoding="utf-8")
    monkeypatch.setattr("pipediag.reporters.html.render", broken)
    monkeypatch.setattr("pipediag.reporters.terminal.summary.render", broken)

    result = CliRunner().invoke(command, ["--run-to-end", "-o", "out", "train.py"])

    assert result.exit_code == 0
    assert Path("out/findings.csv").is_file()
    assert Path("out/session.json").is_file()
    assert "The summary could not be made" in result.stderr
    assert "report.html could not be made" in result.stderr
    assert "`pipediag show out --format csv`" in result.stderr


FAILURE = "It ended before enough steps were seen."


@pytest.mark.parametrize(
    ("failure", "status", "gate", "run_to_end", "expected"),
    [
        (None, None, None, False, ExitStatus.DONE),
        (None, 1, None, False, ExitStatus.DONE),
        (FAILURE, 1, None, False, ExitStatus.SCRIPT_FAILED),
        (FAILURE, -9, None, False, ExitStatus.SCRIPT_FAILED),
        (FAILURE, None, None, False, ExitStatus.SCRIPT_FAILED),
        (None, None, ExitStatus.GATE_FAILED, False, ExitStatus.GATE_FAILED),
        (None, None, ExitStatus.INCONCLUSIVE, False, ExitStatus.INCONCLUSIVE),
        (None, 0, None, True, 0),
        (None, 7, None, True, 7),
        (FAILURE, 7, None, True, 7),
        (FAILURE, -15, None, True, -15),
        (FAILURE, None, None, True, ExitStatus.SCRIPT_FAILED),
        (None, 0, ExitStatus.GATE_FAILED, True, ExitStatus.GATE_FAILED),
        (None, 7, ExitStatus.GATE_FAILED, True, 7),
    ],
)
def test_the_contract(
    failure: str | None,
    status: int | None,
    gate: ExitStatus | None,
    run_to_end: bool,
    expected: int,
) -> None:
    given = analyze_status(
        script_failure=failure, script_status=status, gate=gate, run_to_end=run_to_end
    )

    assert given == expected


def test_code_is_left_out_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[AnalysisRequest] = []

    def analyse(request: AnalysisRequest, _progress: object) -> None:
        asked.append(request)
        raise PipediagError("enough")

    monkeypatch.setattr("pipediag.runner.analysis.analyse", analyse)
    for given in ([], ["--no-source"]):
        with pytest.raises(PipediagError):
            command.main(["-q", *given, __file__], standalone_mode=False)
    assert [one.source for one in asked] == [True, False]
