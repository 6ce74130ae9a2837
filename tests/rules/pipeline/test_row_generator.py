from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import row_generator
from pipediag.session.pipeline import Operation
from tests.factories import make_session
from tests.records import make_operation
from tests.rules.sessions import batch, keeps_up, only, session_of, source


def generator(**overrides: Any) -> Operation:
    values: dict[str, Any] = {"elements": 64.0, "self_ms_per_step": 8.0}
    return make_operation("gen", "from_generator", **{**values, **overrides})


def test_fails_and_predicts_the_crossings_saved() -> None:
    finding = only(row_generator, session_of(generator(), batch(64)))
    assert finding.status == "fail"
    assert "arrays of 64 rows" in finding.advice
    # 64 x 50 us x 63/64 = 3.15 ms less.
    assert finding.speedup_at_most == pytest.approx(10 / 6.85, abs=0.001)


def test_a_fast_generator_saves_no_more_than_its_own_time() -> None:
    finding = only(row_generator, session_of(generator(self_ms_per_step=1.28), batch(64)))
    assert finding.speedup_at_most == pytest.approx(10 / (10 - 1.28 * 63 / 64), abs=0.001)


def test_rows_that_take_long_by_themselves_only_inform() -> None:
    # Four rows of 2 ms each: 0.2 ms at the crossing.
    finding = only(row_generator, session_of(generator(elements=4.0), batch(4)))
    assert finding.status == "informative"
    assert "0.2 of the 8.0 ms" in finding.advice


def test_a_generator_of_batches_passes() -> None:
    session = session_of(generator(elements=1.0), make_operation("prefetch", "prefetch"))
    assert only(row_generator, session).status == "pass"


def test_does_not_fail_where_the_step_does_not_wait() -> None:
    session = session_of(generator(), batch(64), **keeps_up())
    assert only(row_generator, session).status == "informative"


def test_other_sources_are_none_of_its_business() -> None:
    assert only(row_generator, session_of(source(), batch())).status == "not-applicable"


def test_keras_own_generator_is_none_of_its_business() -> None:
    session = session_of(generator(made_by_framework=True), batch(64))
    assert only(row_generator, session).status == "not-applicable"


def test_missing_data() -> None:
    session = session_of(generator(self_ms_per_step=None), batch(64))
    assert only(row_generator, session).status == "inconclusive"
    assert only(row_generator, make_session(pipeline=None)).status == "inconclusive"


def test_says_why_it_is_not_tried() -> None:
    finding = only(row_generator, session_of(generator(), batch(64)))
    assert finding.edit is None
    assert finding.trial.state == "not_tried"
    assert "the generator itself rewritten" in str(finding.trial.reason)
