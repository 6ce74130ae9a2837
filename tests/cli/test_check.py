from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from pipediag.cli.check import command
from pipediag.errors import PipediagError
from pipediag.session.model import Session
from pipediag.session.worker import Worker
from tests.comparison.sides import run_of
from tests.factories import make_compute_bound_session, make_loop, make_session
from tests.gate.test_evaluation import make_inconclusive_session, make_script
from tests.records import make_environment

STRICT = "[tool.pipediag]\nmax-input-wait-percent = 20\n"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    return tmp_path


def write_session(folder: Path, session: Session) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "session.json"
    path.write_text(session.model_dump_json(), encoding="utf-8")
    return path


def check(*arguments: Any) -> Result:
    given = [str(argument) for argument in arguments]
    return CliRunner().invoke(command, given, catch_exceptions=False)


def make_crashed_session() -> Session:
    script = make_script(outcome="raised", status=1, detail="ValueError")
    return make_session(script=script, steps=None, breakdown=None, findings=[])


@pytest.mark.parametrize(
    ("session", "status"),
    [
        (make_compute_bound_session(), 0),
        (make_session(), 1),
        (make_crashed_session(), 3),
        (make_inconclusive_session(), 4),
    ],
)
def test_the_exit_status_is_that_of_the_contract(here: Path, session: Session, status: int) -> None:
    result = check(write_session(here / "run", session))
    assert result.exit_code == status
    assert f"exit status {status}" in result.stdout


def test_a_named_configuration_wins(here: Path) -> None:
    (here / "pyproject.toml").write_text(STRICT, encoding="utf-8")
    (here / "loose.toml").write_text(STRICT.replace("20", "90"), encoding="utf-8")
    path = write_session(here / "run", make_session(findings=[]))
    assert check(path, "--config", here / "loose.toml").exit_code == 0


def named(session: Session, script: str) -> Session:
    return session.but(script=make_script(path=script))


def test_several_scripts_show_all_values_and_the_worst_decides(here: Path) -> None:
    (here / "pyproject.toml").write_text(STRICT, encoding="utf-8")
    good = write_session(here / "good", named(make_compute_bound_session(), "good.py"))
    bad = write_session(here / "bad", named(make_session(findings=[]), "bad.py"))
    result = check(good, bad)
    assert result.exit_code == 1
    assert f"{good}: passed" in result.stdout
    assert f"{bad}: failed" in result.stdout
    assert "1.0 % of the step" in result.stdout
    assert "70.0 % of the step" in result.stdout


@pytest.mark.parametrize("apart", ["directory", "module", "worker"])
def test_scripts_of_one_name_and_workers_of_a_job_are_judged_each(here: Path, apart: str) -> None:
    (here / "pyproject.toml").write_text(STRICT, encoding="utf-8")
    good, bad = make_compute_bound_session(), make_session(findings=[])
    other = {"directory": "/repo/b"} if apart == "directory" else {"module": apart == "module"}
    bad = bad.but(script=make_script(**other), loops=[make_loop(line=99)])
    good = good.but(script=make_script(directory="/repo/a" if apart == "directory" else None))
    if apart == "worker":
        good, bad = (
            one.but(environment=make_environment(worker=Worker(f"rank-{rank}", rank, 2, "Slurm")))
            for rank, one in enumerate((good, bad))
        )
    paths = [write_session(here / "job" / name, one) for name, one in (("0", good), ("1", bad))]
    assert check(paths[0]).exit_code == 0
    assert check(*paths).exit_code == 1
    if apart != "directory":
        with pytest.raises(PipediagError, match="--baseline is of one script"):
            check(*paths, "--baseline", paths[0])


def test_runs_in_several_checkouts_are_of_one_script(here: Path) -> None:
    def run(folder: str, line: int = 7, path: str = "train.py") -> Path:
        script = make_script(path=path, directory=f"/tmp/{folder}")
        loop = make_loop(file=f"/tmp/{folder}/train.py", line=line)
        return write_session(here / folder / str(line), run_of(script=script, loops=[loop]))

    one, two, moved = run("a"), run("b"), run("b", 9)
    assert check(one, two).stdout.count("2 runs") == 1
    assert "2 runs" not in check(one, moved).stdout
    # Where there is a baseline, they are all of one script, though their lines have moved.
    other = run("c", 9, "/tmp/c/train.py")
    assert "3 runs" in check(one, moved, other, "--baseline", two).stdout


def test_of_several_runs_of_a_script_one_odd_run_decides_nothing_and_a_failed_one_all(
    here: Path,
) -> None:
    odd = run_of(30.0, input_wait=70.0)
    for name, session in (("a", run_of(10.0)), ("b", odd), ("c", run_of(9.0))):
        write_session(here / "runs" / name, session)
    (here / "pyproject.toml").write_text(STRICT.replace("20", "50"), encoding="utf-8")
    assert check(here / "runs").exit_code == 0
    write_session(here / "runs" / "d", make_crashed_session())
    assert check(here / "runs").exit_code == 3


def test_a_baseline_fails_what_got_slower(here: Path) -> None:
    (here / "pyproject.toml").write_text("[tool.pipediag]\nmax-input-wait-percent = 90\n")
    base = write_session(here / "base", run_of(10.0))
    head = write_session(here / "head", run_of(20.0))

    assert check(head).exit_code == 0
    result = check(head, "--baseline", base)
    assert result.exit_code == 1
    assert f"{head} against {base}: failed\n  FAIL          baseline.step: " in result.stdout
    assert check(base, "--baseline", base).exit_code == 0


def test_a_baseline_is_of_one_script(here: Path) -> None:
    one = write_session(here / "one", named(run_of(), "one.py"))
    two = write_session(here / "two", named(run_of(), "two.py"))
    with pytest.raises(PipediagError, match="--baseline is of one script"):
        check(one, two, "--baseline", one)
    with pytest.raises(PipediagError, match=r"one\.py.*two\.py"):
        check(one, "--baseline", one, "--baseline", two)


def test_the_output_file_gets_the_form_and_the_terminal_the_text(here: Path) -> None:
    (here / "real.md").write_text("old", encoding="utf-8")
    (here / "link.md").symlink_to(here / "real.md")
    path = write_session(here / "run", make_session())
    result = check(path, "--format", "markdown", "--output", here / "link.md")
    assert result.exit_code == 1
    assert result.stdout.startswith("train.py: failed")
    assert (here / "link.md").is_symlink()
    assert (here / "real.md").read_text(encoding="utf-8").startswith("## pipediag")


@pytest.mark.parametrize("target", ["dangling", "/dev/full"])
def test_an_output_that_cannot_be_written_is_one_sentence_behind_the_result(
    here: Path, target: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "dangling").symlink_to(here / "no" / "such" / "directory")
    path = write_session(here / "run", make_session())
    with (
        pytest.raises(PipediagError, match="Could not write") as caught,
        command.make_context("check", [str(path), "--output", str(here / target)]) as context,
    ):
        command.invoke(context)
    assert caught.value.status == 2
    assert capsys.readouterr().out.startswith("train.py: failed")
