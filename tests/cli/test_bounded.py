"""A session that is made to be costly ends in an answer, whatever is asked of it.

That its cost is in proportion to its size is counted in tests/encoding/test_bounded_work.py; here
it is as large as to end badly where it is not, with limits by the system on all commands together.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pipediag.session.store import dump_session
from tests.comparison.sides import run_of
from tests.factories import make_finding
from tests.probe import environment

CPU_S = 90
"""Of all commands together; each takes seconds at most. Processor time, which a busy machine does
not lengthen."""
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
FORMS = ("text", "github", "markdown", "junit", "sarif", "gitlab", "json")


def commands(file: str) -> list[str]:
    """All that take a session."""
    return [
        *(f"check {file} --format {name} -o {name}.out" for name in FORMS),
        f"check good.json --baseline {file}",
        *(f"compare good.json {file} --format {name}" for name in ("text", "html", "markdown")),
        f"history add {file} --file {file}.sqlite",
        f"history show --file {file}.sqlite",
        f"history show --file {file}.sqlite --format html",
        f"report {file} --format html,csv,json -o out-{file}",
    ]


def content(**parts: Any) -> dict[str, Any]:
    return {**json.loads(dump_session(run_of())), **parts}


def much_of_everything() -> str:
    """Findings, steps, notes, unknown keys and long texts,.

    The script's name is as long as all the rest, and findings without a place are at the script.
    """
    finding = make_finding(title="</b>::error::" * 9, file=None, line=None)
    session = content(findings=[finding.model_dump()] * 2_000)
    name = "\u202e\x1b[2J<a href='x'>|`@x" * 60_000
    session["script"] = {"path": name, "args": [name] * 3, "outcome": "stopped"}
    session["steps"]["samples_ms"] = [10.0 + at % 7 for at in range(200_000)]
    session["notes"] = ["::error::x" * 10] * 20_000
    unknown = {f"key\u202e{at}": {"x": [at]} for at in range(20_000)}
    return json.dumps({**session, **unknown, "created_at": name})


TAKEN = {"much.json": much_of_everything}
REFUSED = {
    "deep.json": lambda: '{"schema_version": "1", "notes": ' + "[" * 3_000_000,
    "objects.json": lambda: json.dumps(content(evidence=0))[:-1] + ', "x": ' + '{"a":' * 2_000_000,
    "digits.json": lambda: json.dumps(content())[:-1] + f', "wall_s": {"9" * 5_000_000}}}',
    "wrong.json": lambda: json.dumps(content(notes=list(range(50_000)))),
}


def test_every_command_ends_with_an_answer(tmp_path: Path) -> None:
    (tmp_path / "good.json").write_text(dump_session(run_of()), encoding="utf-8")
    for name, make in (TAKEN | REFUSED).items():
        (tmp_path / name).write_text(make(), encoding="utf-8")
    asked = [command for name in TAKEN | REFUSED for command in commands(name)]
    program = ALL.format(cpu=CPU_S, memory=MEMORY_BYTES, commands=asked)
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
    statuses = {line.partition(" ended with ")[0]: line[-1] for line in ended}
    assert list(statuses) == asked
    assert {statuses[line] for name in TAKEN for line in commands(name)} <= {"0", "1", "4"}
    assert {statuses[line] for name in REFUSED for line in commands(name)} == {"2"}
    assert "error in pipediag itself" not in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stdout) < 20 * (tmp_path / "much.json").stat().st_size


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
