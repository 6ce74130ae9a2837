from __future__ import annotations

from typing import Any

from pipediag.rules.embedding import graph_constants as rule
from pipediag.session.findings import Finding
from tests.factories import make_loop, make_session
from tests.records import make_function, make_operation, make_pipeline
from tests.rules.limits import Limit, stands
from tests.rules.sessions import only, run

REFUSAL = "ValueError: Cannot create a tensor proto whose content is larger than 2GB."


def in_a_map(megabytes: float, **overrides: Any) -> Finding:
    function = make_function(constant_bytes=round(megabytes * 1e6))
    op = make_operation(line=12, function=function)
    values = {"pipeline": make_pipeline(ops=[op], bottleneck_op_id=None), **overrides}
    return only(rule, make_session(**values))


def test_an_array_that_a_map_reads_is_told_with_its_line() -> None:
    finding = in_a_map(1_500.0)

    assert (finding.status, finding.severity, finding.line) == ("fail", "warn", 12)
    assert "holds 1,500 MB as constants in its graph, 70 % of what TensorFlow takes" in (
        finding.advice
    )
    assert finding.evidence["limit_bytes"] == 2**31


def test_one_that_the_step_reads() -> None:
    loops = [make_loop(constant_bytes=900_000_000)]
    finding = only(rule, make_session(loops=loops, pipeline=None))

    assert (finding.status, finding.line) == ("fail", loops[0].line)
    assert "900 MB" in finding.advice


def test_the_error_that_ended_a_script_is_explained() -> None:
    session = make_session()
    script = session.script.model_copy(update={"detail": REFUSAL, "outcome": "raised"})
    finding = only(rule, session.model_copy(update={"script": script}))

    assert (finding.status, finding.severity) == ("fail", "error")
    assert "`table = tf.constant(array)`" in finding.advice


def test_small_ones_pass_and_what_was_not_read_is_not_judged() -> None:
    assert in_a_map(1.0).status == "pass"
    unread = make_operation(function=make_function())
    pipeline = make_pipeline(ops=[unread], bottleneck_op_id=None)
    (finding,) = run(rule, make_session(pipeline=pipeline))
    assert finding.status == "not-applicable"


def test_its_limit() -> None:
    stands(Limit(rule, rule.LARGE_CONSTANTS, in_a_map, "fail", "pass"))
