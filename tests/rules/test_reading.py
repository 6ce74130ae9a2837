from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.reading import SEQUENTIAL_FILES, SERIAL_FLAT_MAP, opened_at_once
from pipediag.session.edits import AUTOTUNE, Change, Edit, Replace, SetOptions, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, run, session_of, source

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


def files_session_with(op: Operation, **overrides: Any) -> Session:
    return session_of(op, batch(), **{"host": COLD, **overrides})


def test_fails_on_files_from_disk_without_a_prediction() -> None:
    finding = only(SEQUENTIAL_FILES, files_session_with(reader()))
    assert finding.status == "fail"
    assert finding.speedup_at_most is None
    assert finding.evidence["from_disk_percent"] == 100.0


def test_warm_files_only_inform() -> None:
    finding = only(SEQUENTIAL_FILES, files_session_with(reader(), host=WARM))
    assert finding.status == "informative"
    assert finding.edit is not None


def test_compressed_files_fail_even_when_warm() -> None:
    op = reader(parameters={"file_count": 10, "compression_type": "GZIP"})
    finding = only(SEQUENTIAL_FILES, files_session_with(op, host=WARM))
    assert finding.status == "fail"
    assert finding.speedup_at_most == pytest.approx(10 / 6, abs=0.001)


@pytest.mark.parametrize(
    "parameters",
    [{"file_count": 1}, {"file_count": 10, "num_parallel_reads": -1}],
)
def test_one_file_and_parallel_reads_pass(parameters: dict[str, Any]) -> None:
    assert (
        only(SEQUENTIAL_FILES, files_session_with(reader(parameters=parameters))).status == "pass"
    )


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
    finding = only(SEQUENTIAL_FILES, nested("flat_map", None))
    assert finding.status == "fail"


def test_wait_that_nothing_explains_is_the_readers() -> None:
    op = reader(self_ms_per_step=0.3, parameters={"file_count": 10, "compression_type": "GZIP"})
    finding = only(SEQUENTIAL_FILES, files_session_with(op, host=WARM))
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
    assert only(SEQUENTIAL_FILES, session).status == "informative"


def test_a_parallel_interleave_passes() -> None:
    assert only(SEQUENTIAL_FILES, nested("interleave", -1)).status == "pass"


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    finding = only(SEQUENTIAL_FILES, files_session_with(reader(), **keeps_up()))
    assert finding.status == "informative"


def test_missing_data() -> None:
    unmeasured = only(SEQUENTIAL_FILES, files_session_with(reader(self_ms_per_step=None)))
    assert unmeasured.status == "informative"
    assert unmeasured.edit is not None
    assert only(SEQUENTIAL_FILES, make_session(pipeline=None)).status == "inconclusive"
    assert only(SEQUENTIAL_FILES, make_session()).status == "not-applicable"


def edit(label: str, change: Change) -> Edit:
    return Edit(
        id="sequential-files:reader",
        label=label,
        changes=(change,),
        caveat="Measured on files as they are by then: what was read before may lie in memory.",
    )


def test_tries_parallel_reads() -> None:
    assert only(SEQUENTIAL_FILES, files_session_with(reader())).edit == edit(
        "num_parallel_reads=AUTOTUNE on the TFRecordDataset in line 12",
        SetParameters("reader", {"num_parallel_reads": -1}),
    )


@pytest.mark.parametrize(("cpus", "files"), [(2.0, 2), (8.0, 8), (64.0, 16)])
def test_tries_an_interleave_in_place_of_a_flat_map(cpus: float, files: int) -> None:
    host = COLD.model_copy(update={"cores_allowed": cpus})
    session = nested("flat_map", None).model_copy(update={"host": host})
    finding = only(SEQUENTIAL_FILES, session)
    assert finding.edit == edit(
        f"interleave of {files} files in place of the flat_map in line 4",
        Replace("outer", "interleave", {"cycle_length": files, "num_parallel_calls": -1}),
    )


def test_tries_parallel_calls_of_an_interleave() -> None:
    finding = only(SEQUENTIAL_FILES, nested("interleave", 1))
    assert finding.edit == edit(
        "num_parallel_calls=AUTOTUNE on the interleave in line 4",
        SetParameters("outer", {"num_parallel_calls": -1}),
    )


def test_warm_files_are_tried_though_they_only_inform() -> None:
    finding = only(SEQUENTIAL_FILES, files_session_with(reader(), host=WARM))
    assert finding.edit is not None
    assert finding.effect_on_results == "same up to order or rounding"


def test_nothing_is_tried_where_the_step_does_not_wait() -> None:
    assert only(SEQUENTIAL_FILES, files_session_with(reader(), **keeps_up())).edit is None


@pytest.mark.parametrize("unknown", [{"elements": None}, {"bytes_per_element": None}])
def test_files_whose_bytes_were_not_counted_may_come_from_disk(unknown: dict[str, Any]) -> None:
    finding = only(SEQUENTIAL_FILES, files_session_with(reader(**unknown), host=WARM))
    assert (finding.status, finding.evidence["from_disk_percent"]) == ("fail", None)


def test_an_interleave_of_one_opens_more_files_too() -> None:
    """More calls alone would all wait for the one file that is open."""
    opens = make_operation("outer", "interleave", parameters={"cycle_length": 1})
    change, said = opened_at_once(opens, 4, AUTOTUNE, "files")
    assert change == SetParameters("outer", {"num_parallel_calls": AUTOTUNE, "cycle_length": 4})
    assert said == "cycle_length=4, num_parallel_calls=AUTOTUNE on the interleave in line 12"


def outer(kind: str = "flat_map", **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "self_ms_per_step": 8.0,
        "function": make_function(graph_ops={"ReadFile": 1, "DecodePng": 1}),
    }
    return make_operation("images", kind, line=5, **{**values, **overrides})


def flat_session_with(*ops: Operation, **overrides: Any) -> Session:
    return session_of(source(), *ops, batch(), **overrides)


def edits(session: Session) -> list[tuple[Any, ...]]:
    return [one.edit.changes for one in run(SERIAL_FLAT_MAP, session) if one.edit]


AS_CPUS = Replace(
    "images", "parallel_flat_map", {"cycle_length": 2, "num_parallel_calls": AUTOTUNE}
)
SIXTEEN = (
    Replace("images", "parallel_flat_map", {"cycle_length": 16, "num_parallel_calls": 16}),
    SetOptions({"threading.private_threadpool_size": 16}),
)


def test_files_opened_by_the_function_itself_are_opened_at_once_with_and_without_threads() -> None:
    assert edits(flat_session_with(outer())) == [(AS_CPUS,), SIXTEEN]


def test_what_only_computes_gets_as_many_calls_as_there_are_cpus() -> None:
    decodes = outer(function=make_function(graph_ops={"DecodePng": 1}))
    assert edits(flat_session_with(decodes)) == [(AS_CPUS,)]


@pytest.mark.parametrize("host", [None, make_host(threads={"tf_data": 95.0})])
@pytest.mark.parametrize("reader", [[], [make_operation("r", "TFRecordDataset")]])
def test_python_gets_sixteen_calls_and_threads_whatever_is_thought_of_it(
    host: Any, reader: list[Operation]
) -> None:
    inner = [one.model_copy(update={"inside_function_of": "images"}) for one in reader]
    python = outer(function=make_function(graph_ops={"PyFunc": 1}))
    session = flat_session_with(*inner, python, host=host)
    (finding,) = run(SERIAL_FLAT_MAP, session)
    assert finding.status == "fail"
    assert edits(session) == [SIXTEEN]


def test_python_of_an_operation_within_is_for_other_rules() -> None:
    function = make_function(graph_ops={"PyFunc": 1})
    inner = make_operation("inner", "map", inside_function_of="images", function=function)
    assert (
        only(SERIAL_FLAT_MAP, flat_session_with(inner, outer(function=function))).status == "pass"
    )


def test_an_interleave_of_one_call_is_no_better() -> None:
    assert edits(flat_session_with(outer("interleave"))) == [(AS_CPUS,), SIXTEEN]


def test_parallel_calls_pass() -> None:
    several = outer("interleave", parameters={"num_parallel_calls": -1})
    assert only(SERIAL_FLAT_MAP, flat_session_with(several)).status == "pass"


@pytest.mark.parametrize("kind", ["TFRecordDataset", "from_generator", "map"])
def test_what_other_rules_look_at_is_theirs(kind: str) -> None:
    inner = make_operation("inner", kind, inside_function_of="images")
    assert only(SERIAL_FLAT_MAP, flat_session_with(outer(), inner)).status == "pass"


def test_a_cheap_one_only_informs() -> None:
    finding = only(SERIAL_FLAT_MAP, flat_session_with(outer(self_ms_per_step=0.3)))
    assert (finding.status, finding.edit) == ("informative", None)


def test_where_the_step_does_not_wait_it_only_informs() -> None:
    finding = only(SERIAL_FLAT_MAP, flat_session_with(outer(), **keeps_up()))
    assert finding.status == "informative"


def test_other_pipelines_are_none_of_its_business() -> None:
    assert only(SERIAL_FLAT_MAP, make_session()).status == "not-applicable"


def test_one_that_those_call_who_read_passes() -> None:
    around = make_operation("around", "interleave", parameters={"num_parallel_calls": 16})
    inner = outer(inside_function_of="around")
    assert only(SERIAL_FLAT_MAP, flat_session_with(around, inner)).status == "pass"
