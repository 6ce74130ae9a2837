"""A session that is made to be costly takes bounded time and memory, whatever is asked of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipediag.session.model import Session
from pipediag.session.store import dump_session
from tests.comparison.sides import run_of
from tests.factories import make_finding
from tests.probe import environment

CPU_S = 120
"""Of all commands together; each takes seconds. Processor time, which a busy machine does not
lengthen."""
MEMORY_BYTES = 3 * 2**30

ALL = """
import resource, sys
resource.setrlimit(resource.RLIMIT_CPU, ({cpu}, {cpu}))
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
from pipediag.cli.main import main
for line in {commands!r}:
    sys.argv = ["pipediag", *line.split()]
    try:
        main()
    except SystemExit as ended:
        print(line, "ended with", ended.code, file=sys.stderr)
"""
COMMANDS = [
    *(f"check s.json --format {name} -o {name}.out" for name in ("text", "github", "markdown")),
    *(f"check s.json --format {name} -o {name}.out" for name in ("junit", "sarif", "gitlab")),
    "check good.json --baseline s.json",
    *(f"compare good.json s.json --format {name}" for name in ("text", "html", "markdown", "json")),
    "history add s.json --file h.sqlite",
    "history show --file h.sqlite",
    "history show --file h.sqlite --format html",
    "report s.json --format html,csv,json -o out",
]


def with_part(**part: Any) -> str:
    return json.dumps({**json.loads(dump_session(run_of())), **part})


def findings(count: int) -> str:
    one = json.loads(dump_session(run_of(findings=[make_finding(title="</b>::error::" * 9)])))
    return json.dumps({**one, "findings": one["findings"] * count})


def steps(count: int) -> str:
    session: Session = run_of()
    assert session.steps is not None
    samples = [10.0 + at % 7 for at in range(count)]
    return dump_session(
        session.model_copy(
            update={"steps": session.steps.model_copy(update={"samples_ms": samples})}
        )
    )


def a_long_name() -> str:
    name = "\u202e\x1b[2J<a href='x'>|`@x" * 30_000
    script = {"path": name, "args": [name] * 3, "outcome": "stopped"}
    return with_part(script=script, created_at=name)


COSTLY: dict[str, Callable[[], str]] = {
    "deep": lambda: '{"schema_version": "1.2", "notes": ' + "[" * 3_000_000,
    "deep objects": lambda: with_part(evidence=0)[:-1] + ', "x": ' + '{"a":' * 2_000_000,
    "many digits": lambda: with_part()[:-1] + f', "wall_s": {"9" * 5_000_000}}}',
    "many keys": lambda: with_part(**{f"key{at}": at for at in range(200_000)}),
    "a newer version, many keys": lambda: with_part(
        schema_version="1.99", **{f"key\u202e{at}": {"x": [at]} for at in range(60_000)}
    ),
    "many findings": lambda: findings(10_000),
    "many steps": lambda: steps(1_000_000),
    "long texts": a_long_name,
    "many notes": lambda: with_part(notes=["::error::x" * 10] * 100_000),
    "many wrong values": lambda: with_part(notes=list(range(300_000))),
}


@pytest.mark.parametrize("make", COSTLY.values(), ids=COSTLY)
def test_every_command_ends_with_an_answer(tmp_path: Path, make: Callable[[], str]) -> None:
    (tmp_path / "good.json").write_text(dump_session(run_of()), encoding="utf-8")
    (tmp_path / "s.json").write_text(make(), encoding="utf-8")
    program = ALL.format(cpu=CPU_S, memory=MEMORY_BYTES, commands=COMMANDS)
    # The libraries of NumPy and SciPy would claim memory for each CPU of a large machine.
    limited = {**environment(), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=limited,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr[-2_000:]
    ended = [line for line in done.stderr.splitlines() if " ended with " in line]
    assert len(ended) == len(COMMANDS)
    assert [line for line in ended if line[-1] not in "0124"] == []
    assert "error in pipediag itself" not in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stdout) < 20 * (tmp_path / "s.json").stat().st_size + 1_000_000


def test_a_file_that_is_no_session_in_size_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "s.json").open("wb") as file:
        file.truncate(2**40)
    done = subprocess.run(
        [sys.executable, "-m", "pipediag", "compare", "s.json", "s.json"],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "larger than 128 MiB" in done.stderr


def test_a_link_where_a_report_goes_is_replaced_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    folder = tmp_path / "session"
    folder.mkdir()
    (folder / "session.json").write_text(dump_session(run_of()), encoding="utf-8")
    for name in ("report.html", "run.csv", "steps.csv", "findings.csv"):
        (folder / name).symlink_to(os.path.relpath(tmp_path / "victim", folder))
    done = subprocess.run(
        [sys.executable, "-m", "pipediag", "report", "session"],
        cwd=tmp_path,
        env=environment(),
        check=False,
    )
    assert done.returncode == 0
    assert (tmp_path / "victim").read_text() == "mine"
    assert not (folder / "report.html").is_symlink()
