from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pipediag.cli.plan_memory import command
from pipediag.errors import ExitStatus
from pipediag.session.model import Session
from pipediag.session.store import save_session
from tests.factories import make_embedding, make_session
from tests.reporters.sessions import nothing_measured
from tests.rules.embedding.sessions import make_ids
from tests.way_times import make_way_time, timed_session


def plan_of(session: Session, directory: Path, *args: str) -> Result:
    save_session(session, directory)
    return CliRunner().invoke(command, ["--session", str(directory), *args])


def test_a_session_is_planned_from_and_nothing_is_run(tmp_path: Path) -> None:
    session = make_session(embeddings=[make_embedding(layer="items")])
    result = plan_of(session, tmp_path, "--device-memory", "16GB")

    assert result.exit_code == 0
    assert "items 1,000 x 64" in result.stdout
    assert "the device has 14.9 GiB, as given" in " ".join(result.stdout.split())


def test_json(tmp_path: Path) -> None:
    session = make_session(embeddings=[make_embedding()])
    result = plan_of(session, tmp_path, "--json", "--host-memory", "1KiB", "--devices", "8")

    told = json.loads(result.stdout)
    assert told["tables"][0]["table_bytes"] == 256_000
    assert told["rooms"] == [
        {
            "where": "host",
            "bytes": 1024,
            "basis": "given",
            "needed_bytes": told["peak_bytes"],
            "fits": False,
        }
    ]
    (sharding,) = [one for one in told["tables"][0]["ways"] if one["name"] == "sharding"]
    assert "8 devices" in sharding["note"]


def test_a_script_that_failed_before_a_step_gives_no_plan(tmp_path: Path) -> None:
    result = plan_of(nothing_measured(), tmp_path)

    assert result.exit_code == ExitStatus.SCRIPT_FAILED
    assert "nothing to plan with" in result.stderr
    assert result.stdout == ""


def test_what_crosses_the_link_gets_its_time(tmp_path: Path) -> None:
    session = make_session(embeddings=[make_embedding(ids=make_ids())])
    result = plan_of(session, tmp_path, "--link", "1MB/s")

    assert result.exit_code == 0
    # 300 vectors of 256 bytes there, gradients back, and ids of 4 bytes.
    (sharding,) = [line for line in result.stdout.splitlines() if "  sharding" in line]
    assert sharding.split()[-2:] == ["155", "ms"]
    assert "as given, allows" in " ".join(result.stdout.split())


def test_times_of_a_session_are_shown_and_none_are_taken_of_it(tmp_path: Path) -> None:
    shown = plan_of(timed_session(make_way_time()), tmp_path)
    refused = plan_of(timed_session(make_way_time()), tmp_path, "--time-ways", "5")

    assert "6.43x [6.31, 6.57]" in shown.stdout.replace("\N{NO-BREAK SPACE}", " ")
    assert refused.exit_code == 2
    assert "Name the SCRIPT instead" in " ".join(refused.stderr.split())


@pytest.mark.parametrize("args", [[], ["--session", "reports/train", "train.py"]])
def test_either_a_script_or_a_session_is_named(args: list[str]) -> None:
    result = CliRunner().invoke(command, args)

    assert result.exit_code == 2
    assert "Name either a SCRIPT" in result.stderr


def test_a_size_that_is_none_is_refused_before_anything_is_run() -> None:
    result = CliRunner().invoke(command, ["--device-memory", "lots", "train.py"])

    assert result.exit_code == 2
    assert "'lots' is no size" in result.stderr
