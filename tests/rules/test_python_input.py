"""Python that makes the input: generators, PyDatasets, and what runs while tracing."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.python_input import PYTHON_INPUT, TRACE_ONLY_PYTHON
from pipediag.session.edits import Remove, Replace, SetOptions
from pipediag.session.model import HotLine, Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_keras, make_loop, make_session
from tests.records import make_function, make_operation
from tests.rules.sessions import batch, cases, changes, decided, keeps_up, only, session_of, source

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


def generated(*ops: Operation, **overrides: Any) -> Session:
    return session_of(*ops, **{"host": SEEN, **overrides})


def at_once(op: str, count: int) -> object:
    calls = {"cycle_length": count, "num_parallel_calls": count}
    return ("fail", (Replace(op, "interleave", calls), THREADS))


def outer(kind: str, **parameters: Any) -> Operation:
    return make_operation(
        "outer", kind, self_ms_per_step=6.0, function=make_function(), parameters=parameters
    )


INNER = generator(inside_function_of="outer")
READ_AT_ONCE = outer("interleave", num_parallel_calls=4, cycle_length=4)


@cases(
    {
        "waits": (generated(generator(**SLEEPS)), at_once("rows", 2)),
        "read in turn": (
            generated(source(cardinality=8), INNER, outer("flat_map"), batch()),
            at_once("outer", 8),
        ),
        "read at once": (generated(source(), INNER, READ_AT_ONCE, batch()), ("pass", None)),
        "keeps up": (generated(generator(**SLEEPS), **keeps_up()), ("pass", None)),
        "no Python": (session_of(source(), batch()), ("pass", None)),
    },
    "session, expected",
)
def test_a_generator(session: Session, expected: object) -> None:
    assert decided(PYTHON_INPUT, session) == expected


def given_to_fit(
    measured: dict[str, float], keras: dict[str, Any] | None = None, **overrides: Any
) -> Session:
    values = {"data_adapter": "PyDatasetAdapter", "source": "Stored", "workers": 1}
    at = {"source_file": "data.py", "source_line": 3}
    ops = (
        generator(made_by_framework=True, **measured),
        make_operation("ahead", "prefetch", made_by_framework=True),
    )
    loop = make_loop(keras=make_keras(**{**values, **at, **(keras or {})}))
    return generated(*ops, **{"loops": [loop], **overrides})


def workers(**parameters: int) -> object:
    threads = SetOptions({"autotune.enabled": False, "threading.private_threadpool_size": 1})
    return ("fail", (Replace("rows", "PyDataset", parameters), Remove("ahead"), threads))


GENERATOR = {"data_adapter": "GeneratorDataAdapter", "source": "pairs"}


@cases(
    {
        "unmeasured": (given_to_fit({}), workers(workers=2)),
        "computes": (given_to_fit(COMPUTES), workers(workers=2)),
        "waits": (given_to_fit(SLEEPS), workers(workers=16, max_queue_size=32)),
        "read by workers": (given_to_fit({}, {"workers": 4}), ("fail", None)),
        "keeps up": (given_to_fit(SLEEPS, **keeps_up()), ("pass", None)),
        "generator": (given_to_fit(COMPUTES, GENERATOR), ("fail", None)),
    },
    "session, expected",
)
def test_what_is_given_to_fit(session: Session, expected: object) -> None:
    assert decided(PYTHON_INPUT, session) == expected


def traced(names: list[str], graph_ops: dict[str, int] | None = None, **op: Any) -> Session:
    function = make_function(python_calls=names, graph_ops=graph_ops or {"Mul": 1})
    mapped = make_operation("map", "map", **{"function": function, **op})
    return session_of(source(), mapped, batch())


DRAWS = ["numpy.random.uniform"]


@pytest.mark.parametrize(
    ("session", "status"),
    [
        (traced(["time.sleep"]), "informative"),
        (traced(["print"]), "informative"),
        (traced(["open"]), "informative"),
        (traced(DRAWS), "informative"),
        (traced(["time.sleep"], removed_by_tensorflow=True), "informative"),
        (traced(["time.sleep"], {"PyFunc": 1}), "pass"),
        (traced(["print"], {"PrintV2": 1}), "pass"),
        (traced(DRAWS, {"RandomUniform": 1}), "pass"),
        (traced(DRAWS, {"StatelessRandomUniformV2": 1}), "pass"),
        (traced(["numpy.float32", "train.print"], {"Cast": 1}), "pass"),
        (traced([], function=None), "pass"),
        (make_session(pipeline=None), "inconclusive"),
    ],
)
def test_python_that_runs_while_a_function_is_traced(session: Session, status: str) -> None:
    finding = only(TRACE_ONLY_PYTHON, session)
    assert (finding.status, changes(finding)) == (status, None)
    assert finding.op_id == ("map" if status == "informative" else None)
