from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import sequential_files
from pipediag.rules.pipeline.opened_in_turn import opened_at_once
from pipediag.session.edits import AUTOTUNE, Change, Edit, Replace, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_session
from tests.records import make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of

# The reader delivers 32 x 1000 bytes in 10 ms: 3.2 MB/s.
COLD = make_host(read_bytes_per_s=3.2e6, io_wait_percent=40.0)
WARM = make_host(read_bytes_per_s=0.0)


def reader(**overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 8.0,
        "bytes_per_element": 1000.0,
        "parameters": {"file_count": 10},
    }
    return make_operation("reader", "TFRecordDataset", **{**values, **overrides})


def session_with(op: Operation, **overrides: Any) -> Session:
    return session_of(op, batch(), **{"host": COLD, **overrides})


def test_fails_on_files_from_disk_without_a_prediction() -> None:
    finding = only(sequential_files, session_with(reader()))
    assert finding.status == "fail"
    assert "num_parallel_reads=tf.data.AUTOTUNE" in finding.advice
    assert finding.speedup_at_most is None
    assert finding.evidence["from_disk_percent"] == 100.0


def test_warm_files_only_inform() -> None:
    finding = only(sequential_files, session_with(reader(), host=WARM))
    assert finding.status == "informative"
    assert finding.edit is not None


def test_compressed_files_fail_even_when_warm() -> None:
    op = reader(parameters={"file_count": 10, "compression_type": "GZIP"})
    finding = only(sequential_files, session_with(op, host=WARM))
    assert finding.status == "fail"
    assert finding.speedup_at_most == pytest.approx(10 / 6, abs=0.001)


@pytest.mark.parametrize(
    "parameters",
    [{"file_count": 1}, {"file_count": 10, "num_parallel_reads": -1}],
)
def test_one_file_and_parallel_reads_pass(parameters: dict[str, Any]) -> None:
    assert only(sequential_files, session_with(reader(parameters=parameters))).status == "pass"


def nested(kind: str, calls: int | None) -> Session:
    outer = make_operation(
        "outer",
        kind,
        line=4,
        elements=32.0,
        self_ms_per_step=8.0,
        parameters={"num_parallel_calls": calls},
    )
    inner = reader(self_ms_per_step=None, inside_function_of="outer", parameters={})
    session = session_of(make_operation("files", "list_files"), outer, batch(), host=COLD)
    assert session.pipeline is not None
    pipeline = session.pipeline.model_copy(update={"ops": [*session.pipeline.ops, inner]})
    return session.model_copy(update={"pipeline": pipeline})


def test_a_flat_map_over_files_fails() -> None:
    finding = only(sequential_files, nested("flat_map", None))
    assert finding.status == "fail"
    assert "Replace `flat_map` at line 4 by `interleave" in finding.advice


def test_wait_that_nothing_explains_is_the_readers() -> None:
    op = reader(self_ms_per_step=0.3, parameters={"file_count": 10, "compression_type": "GZIP"})
    finding = only(sequential_files, session_with(op, host=WARM))
    assert finding.status == "fail"
    # 7 ms of wait, 0.4 ms of it explained by reader and batch.
    assert finding.evidence["delay_ms_per_step"] == pytest.approx(6.9)


def test_a_flat_map_that_maps_too_is_not_blamed_for_reading() -> None:
    session = nested("flat_map", None)
    assert session.pipeline is not None
    inner = make_operation("map", "map", self_ms_per_step=7.0, inside_function_of="outer")
    *others, read = session.pipeline.ops
    read = read.model_copy(update={"self_ms_per_step": 0.1})
    pipeline = session.pipeline.model_copy(update={"ops": [*others, read, inner]})
    session = session.model_copy(update={"pipeline": pipeline})
    assert only(sequential_files, session).status == "informative"


def test_a_parallel_interleave_passes() -> None:
    assert only(sequential_files, nested("interleave", -1)).status == "pass"


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    finding = only(sequential_files, session_with(reader(), **keeps_up()))
    assert finding.status == "informative"


def test_missing_data() -> None:
    unmeasured = only(sequential_files, session_with(reader(self_ms_per_step=None)))
    assert unmeasured.status == "informative"
    assert unmeasured.edit is not None
    assert "A trial with several files at once tells." in unmeasured.advice
    assert only(sequential_files, make_session(pipeline=None)).status == "inconclusive"
    assert only(sequential_files, make_session()).status == "not-applicable"


def edit(label: str, change: Change) -> Edit:
    return Edit(
        id="sequential-files:reader",
        label=label,
        changes=(change,),
        caveat="Measured on files as they are by then: what was read before may lie in memory.",
    )


def test_tries_parallel_reads() -> None:
    assert only(sequential_files, session_with(reader())).edit == edit(
        "num_parallel_reads=AUTOTUNE on the TFRecordDataset in line 12",
        SetParameters("reader", {"num_parallel_reads": -1}),
    )


@pytest.mark.parametrize(("cpus", "files"), [(2.0, 2), (8.0, 8), (64.0, 16)])
def test_tries_an_interleave_in_place_of_a_flat_map(cpus: float, files: int) -> None:
    host = COLD.model_copy(update={"cores_allowed": cpus})
    session = nested("flat_map", None).model_copy(update={"host": host})
    finding = only(sequential_files, session)
    assert f"cycle_length={files}," in finding.advice
    assert finding.edit == edit(
        f"interleave of {files} files in place of the flat_map in line 4",
        Replace("outer", "interleave", {"cycle_length": files, "num_parallel_calls": -1}),
    )


def test_tries_parallel_calls_of_an_interleave() -> None:
    finding = only(sequential_files, nested("interleave", 1))
    assert "Give `interleave` at line 4 `num_parallel_calls" in finding.advice
    assert finding.edit == edit(
        "num_parallel_calls=AUTOTUNE on the interleave in line 4",
        SetParameters("outer", {"num_parallel_calls": -1}),
    )


def test_warm_files_are_tried_though_they_only_inform() -> None:
    finding = only(sequential_files, session_with(reader(), host=WARM))
    assert finding.edit is not None
    assert finding.effect_on_results == "same up to order or rounding"


def test_nothing_is_tried_where_the_step_does_not_wait() -> None:
    assert only(sequential_files, session_with(reader(), **keeps_up())).edit is None


@pytest.mark.parametrize("unknown", [{"elements": None}, {"bytes_per_element": None}])
def test_files_whose_bytes_were_not_counted_may_come_from_disk(unknown: dict[str, Any]) -> None:
    finding = only(sequential_files, session_with(reader(**unknown), host=WARM))
    assert (finding.status, finding.evidence["from_disk_percent"]) == ("fail", None)


def test_an_interleave_of_one_opens_more_files_too() -> None:
    """More calls alone would all wait for the one file that is open."""
    opens = make_operation("outer", "interleave", parameters={"cycle_length": 1})
    change, said = opened_at_once(opens, 4, AUTOTUNE, "files")
    assert change == SetParameters("outer", {"num_parallel_calls": AUTOTUNE, "cycle_length": 4})
    assert said == "cycle_length=4, num_parallel_calls=AUTOTUNE on the interleave in line 12"
