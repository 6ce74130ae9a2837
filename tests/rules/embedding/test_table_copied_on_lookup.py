from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.embedding import table_copied_on_lookup as rule
from pipediag.session.edits import SetModel
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from tests.factories import (
    make_embedding,
    make_embedding_cost,
    make_keras,
    make_loop,
    make_session,
)
from tests.records import make_breakdown, make_steps
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import keeps_up, only

COPIED = {
    "rows": 500_000,
    "table_bytes": 128_000_000,
    "gradient": "sparse",
    "update": "sparse",
    "copied_on_lookup": True,
    "copied_bytes_per_step": 128_000_000,
    "rows_touched_per_step": 2_502,
    "device": "/job:localhost/replica:0/task:0/device:CPU:0",
}
NOT_COPIED = {"copied_bytes_per_step": 0}


def session_with(*tables: dict[str, Any], **overrides: Any) -> Session:
    made = [make_embedding(**{**COPIED, **table}) for table in tables]
    usual = {**keeps_up(), "loops": [make_loop(keras=make_keras(optimizer="SGD"))]}
    return make_session(embeddings=made, **{**usual, **overrides})


def finding_with(**overrides: Any) -> Finding:
    return only(rule, session_with(overrides))


def test_a_copy_that_takes_a_part_of_the_step_fails_and_is_tried_with_xla() -> None:
    finding = finding_with()

    assert (finding.status, finding.severity) == ("fail", "warn")
    assert finding.advice.startswith("Make an Embedding of your own whose `call` is")
    assert "Each step copies 128 MB, all of `embedding`, to look up 2502 rows:" in finding.advice
    assert "`tf.nn.embedding_lookup(self.embeddings.value, ids)`" in finding.advice
    assert finding.edit is not None
    assert finding.edit.changes == (SetModel({"jit_compile": True}),)
    assert finding.evidence["copied_bytes_per_step"] == 128_000_000


def test_a_table_that_is_read_as_a_whole_but_not_copied_passes() -> None:
    """As under XLA, under Adam, which writes the table in full, or where it is frozen."""
    assert finding_with(**NOT_COPIED).status == "pass"


def test_a_small_table_does_not_count() -> None:
    assert finding_with(table_bytes=9_000_000).status == "not-applicable"
    assert only(rule, make_session()).status == "not-applicable"


def test_a_cast_of_the_whole_table() -> None:
    finding = finding_with(**NOT_COPIED, whole_table_operations={"Cast": 2})

    assert finding.status == "fail"
    assert "`autocast=False`" in finding.advice
    assert "copies" not in finding.advice
    assert finding.evidence["cast_bytes_per_step"] == 256_000_000


def test_a_copy_on_a_gpu_is_quick() -> None:
    finding = finding_with(device="/job:localhost/replica:0/task:0/device:GPU:0")

    # By rates that are taken for granted, so that a trial tells.
    assert (finding.status, finding.edit is not None) == ("informative", True)
    assert "Here that is about 0.6 % of the step." in finding.advice


def test_a_dense_update_comes_first() -> None:
    finding = finding_with(update="dense")

    assert finding.status == "informative"
    assert "see to that first" in finding.advice


def test_where_the_input_decides_it_only_informs() -> None:
    waits = session_with({}, breakdown=make_breakdown(input_wait=50.0, device_compute=40.0))

    finding = only(rule, waits)
    assert (finding.status, finding.edit is not None) == ("informative", True)
    assert "deal with the input first" in finding.advice


def test_several_tables_are_one_finding() -> None:
    names = [{"layer": name, "rows_touched_per_step": None} for name in "abcd"]
    finding = only(rule, session_with(*names))

    assert "copies 512 MB, all of `a`, `b`, `c` and 1 more, to look up the batch's rows" in (
        finding.advice
    )


def test_a_loop_of_one_s_own_has_no_trial() -> None:
    finding = only(rule, session_with({}, loops=[make_loop(kind="eager", keras=None)]))

    assert finding.status == "fail"
    assert finding.edit is None
    assert "the variable itself" in finding.advice
    assert finding.trial.reason is not None


@pytest.mark.parametrize(
    ("missing", "said"),
    [("No graph tells.", "No graph tells."), (None, "How embedding is looked up was not seen.")],
)
def test_a_lookup_that_was_not_seen_is_inconclusive(missing: str | None, said: str) -> None:
    finding = finding_with(copied_bytes_per_step=None, copied_on_lookup=None, missing=missing)

    assert (finding.status, finding.advice) == ("inconclusive", said)


def test_a_copy_that_the_profile_timed_goes_before_the_reckoned_one() -> None:
    """Reckoned, 128 MB would take more than the step of 10 ms."""
    little = session_with({}, embedding_cost=make_embedding_cost(("copy", 0.2), ("rest", 8.0)))
    much = session_with({}, embedding_cost=make_embedding_cost(("copy", 5.0), ("rest", 4.0)))

    assert only(rule, little).status == "informative"
    assert "Here that is 2.0 % of the step." in only(rule, little).advice
    finding = only(rule, much)
    assert finding.status == "fail"
    assert finding.evidence["copy_ms_per_step"] == 5.0
    assert finding.evidence["copy_percent_of_step"] == 50.0
    assert finding.speedup_at_most is not None
    assert finding.speedup_at_most >= 2.0


LIMITS = [
    Limit(
        rule,
        rule.LARGE,
        lambda megabytes: finding_with(
            table_bytes=int(megabytes * 1e6), copied_bytes_per_step=int(megabytes * 1e6)
        ),
        "fail",
        "not-applicable",
    ),
    Limit(
        rule,
        rule.OPERATION_SHARE,
        lambda percent: only(
            rule, session_with({}, steps=make_steps(mean_ms=12.8 * 100 / percent))
        ),
        "fail",
        "informative",
    ),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_a_limit(limit: Limit) -> None:
    stands(limit)
