from __future__ import annotations

import pytest

from pipediag.comparison.comparing import grown
from pipediag.comparison.quantities import Sides
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.comparison.sides import run_of
from tests.records import make_function, make_operation, make_pipeline


def mapped(cost: float | None, *, name: str = "parse", line: int = 12) -> Operation:
    return make_operation(
        f"map_{line}", line=line, self_ms_per_step=cost, function=make_function(name=name)
    )


def session(*ops: Operation, step_ms: float = 10.0) -> Session:
    return run_of(step_ms, pipeline=make_pipeline(ops=list(ops), bottleneck_op_id=None))


def test_the_one_that_grew_most_is_named() -> None:
    base = session(mapped(1.0), mapped(2.0, name="augment", line=13))
    head = session(mapped(1.5), mapped(6.0, name="augment", line=13))
    found = grown(Sides((base,), (head,)))

    assert found is not None
    assert found.name == "`map` of augment"
    assert (found.file, found.line, found.base_ms, found.head_ms) == ("train.py", 13, 2.0, 6.0)


def test_a_line_added_above_does_not_make_it_another() -> None:
    base = session(mapped(1.0), mapped(2.0, name="augment", line=13))
    head = session(mapped(1.0, line=30), mapped(2.6, name="augment", line=31))
    found = grown(Sides((base,), (head,)))

    assert found is not None
    assert (found.line, found.base_ms) == (31, 2.0)


def test_one_that_base_does_not_have_grew_from_nothing() -> None:
    found = grown(
        Sides((session(mapped(1.0)),), (session(mapped(1.0), mapped(3.0, name="resize", line=20)),))
    )
    assert found is not None
    assert (found.line, found.base_ms, found.head_ms) == (20, None, 3.0)


def test_a_lambda_has_no_name() -> None:
    base, head = (session(mapped(cost, name="<lambda>")) for cost in (1.0, 3.0))
    found = grown(Sides((base,), (head,)))
    assert found is not None
    assert found.name == "`map`"


@pytest.mark.parametrize(("cost", "named"), [(1.49, False), (1.5, True)])
def test_less_than_a_twentieth_of_the_step_is_not_named(cost: float, named: bool) -> None:
    found = grown(Sides((session(mapped(1.0)),), (session(mapped(cost)),)))
    assert (found is not None) is named


def test_of_several_runs_the_median_counts() -> None:
    base = tuple(session(mapped(cost)) for cost in (1.0, 1.0, 9.0))
    head = tuple(session(mapped(cost)) for cost in (1.2, 9.0, 1.2))
    assert grown(Sides(base, head)) is None


def test_on_another_machine_the_share_of_the_step_counts() -> None:
    base, head = session(mapped(2.0)), session(mapped(20.0), step_ms=100.0)

    assert grown(Sides((base,), (head,), ratios_only=True)) is None
    slower = session(mapped(40.0), step_ms=100.0)
    found = grown(Sides((base,), (slower,), ratios_only=True))
    assert found is not None
    assert (found.base_ms, found.head_ms, found.shares) == (20.0, pytest.approx(40.0), True)


def test_without_a_pipeline_nothing_is_named() -> None:
    bare = run_of(pipeline=None)
    assert grown(Sides((bare,), (session(mapped(9.0)),))) is None
    assert grown(Sides((session(mapped(9.0)),), (bare,))) is None
    assert grown(Sides((session(mapped(None)),), (session(mapped(None)),))) is None
