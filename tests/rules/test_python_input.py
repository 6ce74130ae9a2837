from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.python_input import TRACE_ONLY_PYTHON, check_python_input
from pipediag.session.edits import Remove, Replace, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import HotLine
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source

LINE = HotLine(file="data.py", line=7, function="rows", percent=80.0, thread="source")
SEEN = make_host(hot_python=[LINE])
SLEEPS = {
    "python_calls_per_step": 1.0,
    "python_wall_ms_per_step": 6.0,
    "python_cpu_ms_per_step": 0.3,
}
COMPUTES = {**SLEEPS, "python_cpu_ms_per_step": 5.9}
THREADS = SetOptions({"threading.private_threadpool_size": 16})


def generator(**overrides: Any) -> Operation:
    values: dict[str, Any] = {"elements": 1.0, "self_ms_per_step": 6.0}
    return make_operation("rows", "from_generator", **{**values, **overrides})


def of_generator(op: Operation, *behind: Operation, **overrides: Any) -> Finding:
    session = session_of(op, *behind, **{"host": SEEN, **overrides})
    (finding,) = check_python_input(session)
    return finding


@pytest.mark.parametrize("measured", [{}, SLEEPS, COMPUTES])
def test_two_copies_of_a_generator_are_tried_whatever_was_measured(
    measured: dict[str, float],
) -> None:
    finding = of_generator(generator(**measured))

    assert finding.status == "fail"
    assert (finding.file, finding.line) == ("data.py", 7)
    assert finding.edit is not None
    copies = Replace("rows", "interleave", {"cycle_length": 2, "num_parallel_calls": 2})
    assert finding.edit.changes == (copies, THREADS)


def test_copies_are_tried_where_stacks_of_elements_gain_nothing() -> None:
    of_rows, of_batches = of_generator(generator(elements=32.0)), of_generator(generator())

    assert of_rows.edit is not None
    assert of_rows.edit.instead_of == "generator-elements:rows"
    assert of_batches.edit is not None
    assert of_batches.edit.instead_of is None


def test_what_was_measured_is_said_and_orders_the_advice() -> None:
    waits, _computes = of_generator(generator(**SLEEPS)), of_generator(generator(**COMPUTES))

    assert waits.evidence["python_off_cpu_percent"] == 95.0


def test_generators_read_in_turn_are_read_at_once() -> None:
    outer = make_operation("outer", "flat_map", self_ms_per_step=6.0, function=make_function())
    inner = generator(inside_function_of="outer")
    (finding,) = check_python_input(
        session_of(source(cardinality=8), inner, outer, batch(), host=SEEN)
    )

    assert finding.edit is not None
    several = Replace("outer", "interleave", {"cycle_length": 8, "num_parallel_calls": 8})
    assert finding.edit.changes == (several, THREADS)


def test_generators_that_are_read_at_once_already_pass() -> None:
    parameters = {"num_parallel_calls": 4, "cycle_length": 4}
    outer = make_operation("outer", "interleave", function=make_function(), parameters=parameters)
    (finding,) = check_python_input(
        session_of(source(), generator(inside_function_of="outer"), outer, batch())
    )
    assert finding.status == "pass"


def test_one_that_keeps_up_passes() -> None:
    assert of_generator(generator(**SLEEPS), **keeps_up()).status == "pass"


def test_input_that_python_does_not_make() -> None:
    (finding,) = check_python_input(session_of(source(), batch()))
    assert finding.status == "not-applicable"


def of_pydataset(
    measured: dict[str, float], keras: dict[str, Any] | None = None, **overrides: Any
) -> Finding:
    use = make_keras(
        data_adapter="PyDatasetAdapter",
        source="Stored",
        source_file="data.py",
        source_line=3,
        **{"workers": 1, **(keras or {})},
    )
    ops = (
        generator(made_by_framework=True, **measured),
        make_operation("ahead", "prefetch", made_by_framework=True),
    )
    session = session_of(*ops, **{"host": SEEN, "loops": [make_loop(keras=use)], **overrides})
    (finding,) = check_python_input(session)
    return finding


@pytest.mark.parametrize(
    ("measured", "parameters"),
    [
        ({}, {"workers": 2}),
        (COMPUTES, {"workers": 2}),
        (SLEEPS, {"workers": 16, "max_queue_size": 32}),
    ],
)
def test_a_pydataset_is_read_by_threads_in_a_trial(
    measured: dict[str, float], parameters: dict[str, int]
) -> None:
    finding = of_pydataset(measured)

    assert (finding.status, finding.file, finding.line) == ("fail", "data.py", 7)
    assert finding.edit is not None
    threads = SetOptions({"autotune.enabled": False, "threading.private_threadpool_size": 1})
    by_workers = Replace("rows", "PyDataset", parameters)
    assert finding.edit.changes == (by_workers, Remove("ahead"), threads)


def test_one_that_workers_read_already_needs_cheaper_batches() -> None:
    finding = of_pydataset({}, keras={"workers": 4})
    assert (finding.status, finding.edit) == ("fail", None)


def test_a_pydataset_that_keeps_up_passes() -> None:
    assert of_pydataset(SLEEPS, **keeps_up()).status == "pass"


def test_a_generator_given_to_fit_is_named_by_its_line() -> None:
    use = make_keras(data_adapter="GeneratorDataAdapter", source="pairs", source_line=3)
    (finding,) = check_python_input(
        session_of(
            generator(made_by_framework=True, **COMPUTES),
            host=SEEN,
            loops=[make_loop(keras=use)],
        )
    )
    assert (finding.status, finding.file, finding.line) == ("fail", "data.py", 7)
    assert finding.evidence["python_calls_per_step"] == 1.0


def finding_with(names: list[str], graph_ops: dict[str, int] | None = None, **op: Any) -> Finding:
    function = make_function(python_calls=names, graph_ops=graph_ops or {"Mul": 1})
    mapped = make_operation("map", "map", function=function, **op)
    return only(TRACE_ONLY_PYTHON, session_of(source(), mapped, batch()))


@pytest.mark.parametrize("names", [["time.sleep"], ["print"], ["open"]])
def test_says_that_it_costs_nothing(names: list[str]) -> None:
    finding = finding_with(names)
    assert finding.status == "informative"
    assert finding.op_id == "map"


def test_an_operation_that_tensorflow_removed_counts() -> None:
    finding = finding_with(["time.sleep"], removed_by_tensorflow=True)
    assert finding.status == "informative"
    assert finding.evidence["removed_by_tensorflow"] is True


@pytest.mark.parametrize(
    ("names", "graph_ops"),
    [
        (["time.sleep"], {"PyFunc": 1}),
        (["print"], {"PrintV2": 1}),
        (["numpy.random.uniform"], {"RandomUniform": 1}),
        (["numpy.random.uniform"], {"StatelessRandomUniformV2": 1}),
        (["numpy.float32", "train.print"], {"Cast": 1}),
    ],
)
def test_near_misses_pass(names: list[str], graph_ops: dict[str, int]) -> None:
    assert finding_with(names, graph_ops).status == "pass"


def test_an_operation_without_a_known_function_passes() -> None:
    session = session_of(source(), make_operation("map", "map", function=None), batch())
    assert only(TRACE_ONLY_PYTHON, session).status == "pass"


def test_without_a_pipeline_it_is_inconclusive() -> None:
    assert only(TRACE_ONLY_PYTHON, make_session(pipeline=None)).status == "inconclusive"
