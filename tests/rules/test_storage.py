"""Files that come from a disk in the measured steps, and files on remote storage."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.reading import SEQUENTIAL_FILES
from pipediag.rules.registry import run_rules
from pipediag.rules.storage import COLD_FILES
from pipediag.session.edits import SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, cases, keeps_up, run, session_of, source

MB = 10**6


def reader(**parameters: Any) -> Operation:
    return make_operation(
        "reader",
        "TFRecordDataset",
        elements=32.0,
        self_ms_per_step=8.0,
        bytes_per_element=10_000.0,
        parameters={"file_count": 10, **parameters},
    )


def read(
    read_mb: float | None = 90.0, asked_mb: float | None = 100.0, **given: Any
) -> dict[str, Any]:
    """The host, where so many MB a second came from disk, of so many that were asked for."""
    return {
        "host": make_host(
            read_bytes_per_s=None if read_mb is None else read_mb * MB,
            asked_bytes_per_s=None if asked_mb is None else asked_mb * MB,
            available_bytes=1000 * MB,
        ),
        **given,
    }


SMALL, LARGE = {"file_bytes": 300 * MB}, {"file_bytes": 3000 * MB}


@cases(
    {
        "cold": (session_of(reader(**SMALL), batch(), **read()), "informative"),
        "cold and too large": (session_of(reader(**LARGE), batch(), **read()), "informative"),
        "of unknown size": (session_of(reader(), batch(), **read()), "informative"),
        "warm": (session_of(reader(**SMALL), batch(), **read(0.0)), "pass"),
        "nearly warm": (session_of(reader(**SMALL), batch(), **read(9.0)), "pass"),
        "little": (session_of(reader(**SMALL), batch(), **read(0.1, 0.1)), "pass"),
        "nothing read": (session_of(reader(**SMALL), batch(), **read(0.0, 0.0)), "pass"),
        "not counted": (session_of(reader(**SMALL), batch(), **read(None, None)), "pass"),
        "no host": (session_of(reader(**SMALL), batch(), host=None), "pass"),
        "keeps up": (session_of(reader(**SMALL), batch(), **read(**keeps_up())), "pass"),
        "remote": (session_of(reader(remote_storage="nfs4"), batch(), **read()), "pass"),
    },
    "session, status",
)
def test_files_that_come_from_disk(session: Session, status: str) -> None:
    assert [one.status for one in run(COLD_FILES, session)] == [status]


@pytest.mark.parametrize(("parameters", "expected"), [(SMALL, 300 * MB), ({}, None)])
def test_what_an_epoch_reads(parameters: dict[str, Any], expected: int | None) -> None:
    [finding] = run(COLD_FILES, session_of(reader(**parameters), batch(), **read()))
    assert finding.evidence["epoch_bytes"] == expected


IMAGES = make_operation(
    "images",
    "map",
    elements=32.0,
    self_ms_per_step=320.0,
    latency_ms_per_step=8.0,
    function=make_function(graph_ops={"ReadFile": 1, "DecodePng": 1}),
)


def test_the_findings_on_what_reads_remote_files_name_their_storage() -> None:
    names = source(parameters={"remote_storage": "fuse.gcsfuse"})
    session = session_of(names, IMAGES, batch(), **read())
    [cache] = [one for one in run_rules(session) if one.rule == "missing-cache"]
    assert cache.op_id == "images"
    assert cache.evidence["remote_storage"] == "fuse.gcsfuse"
    assert cache.evidence["opening_ms_per_file"] == 10.0
    local = run_rules(session_of(source(), IMAGES, batch(), **read()))
    assert not any("remote_storage" in one.evidence for one in local)


def test_remote_files_are_read_by_more_readers_whatever_the_disk_did() -> None:
    session = session_of(reader(remote_storage="nfs4"), batch(), **read(0.0))
    [finding] = run(SEQUENTIAL_FILES, session)
    assert finding.status == "fail"
    assert finding.edit is not None
    assert finding.edit.changes == (SetParameters("reader", {"num_parallel_reads": 16}),)
