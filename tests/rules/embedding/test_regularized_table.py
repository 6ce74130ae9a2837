from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.embedding import regularized_table as rule
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
from tests.records import make_breakdown
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import keeps_up, only

REGULARISED = {
    "rows": 500_000,
    "table_bytes": 128_000_000,
    "gradient": "dense",
    "update": "dense",
    "regularizer": "L2",
    "temporary_bytes": 896_000_000,
    "whole_table_operations": {"AddN": 1, "Mul": 3, "Square": 1},
    "rows_touched_per_step": 2_502,
}
CONSTRAINED = {"regularizer": None, "constraint": "MaxNorm", "gradient": "sparse"}


def session_with(*tables: dict[str, Any], **overrides: Any) -> Session:
    made = [make_embedding(**{**REGULARISED, **table}) for table in tables]
    usual = {**keeps_up(), "loops": [make_loop(keras=make_keras(optimizer="SGD"))]}
    return make_session(embeddings=made, **{**usual, **overrides})


def finding_with(**overrides: Any) -> Finding:
    return only(rule, session_with(overrides))


def test_a_regulariser_over_a_large_table_fails() -> None:
    finding = finding_with()

    assert (finding.status, finding.severity) == ("fail", "warn")
    assert finding.advice.startswith("Give `embedding` `activity_regularizer` in place of")
    assert "(L2) adds all 500000 rows to the loss" in finding.advice
    assert "makes 896 MB of tensors" in finding.advice
    assert finding.effect_on_results == "changes a hyper-parameter"
    assert finding.edit is not None
    assert finding.edit.changes == (SetModel({"table_terms_left_out": True}),)
    assert finding.edit.label == "no regulariser and no constraint on embeddings"


def test_it_stands_where_the_layer_was_made_or_else_at_the_loop() -> None:
    session = session_with({"file": None}, {"file": "model.py", "line": 12})
    made = only(rule, session)
    loop = session.loops[0]
    unseen = finding_with()

    assert (made.file, made.line) == ("model.py", 12)
    assert (unseen.file, unseen.line) == (loop.file, loop.line)


@pytest.mark.parametrize(
    ("optimizer", "said", "used"),
    [
        ("Adam", "by `pipediag.optimizers.LazyAdam`", "row_wise"),
        ("Ftrl", "by SGD without momentum", "sgd_for_tables"),
    ],
)
def test_an_optimizer_that_passes_over_the_table_too_gives_way_with_it(
    optimizer: str, said: str, used: str
) -> None:
    loops = [make_loop(keras=make_keras(optimizer=optimizer))]
    finding = only(rule, session_with({}, loops=loops))

    assert f"{optimizer} passes over it, too: update its rows alone, {said}." in finding.advice
    assert finding.edit is not None
    assert finding.edit.changes == (SetModel({"table_terms_left_out": True, "optimizer": used}),)


def test_what_accumulates_gradients_gives_way_to_what_is_tried() -> None:
    settings = {"gradient_accumulation_steps": 4}
    loops = [make_loop(keras=make_keras(optimizer="Adam", optimizer_settings=settings))]
    finding = only(rule, session_with({}, loops=loops))

    assert "update its rows alone, by SGD without momentum." in finding.advice


def test_a_loop_of_one_s_own_is_not_tried() -> None:
    finding = only(rule, session_with({}, loops=[make_loop(kind="eager", keras=None)]))

    assert finding.edit is None
    assert finding.trial.reason is not None


def test_a_constraint_over_a_large_table_fails() -> None:
    finding = finding_with(**CONSTRAINED, temporary_bytes=None)

    assert finding.status == "fail"
    assert "Leave `embeddings_constraint` (MaxNorm) of `embedding` out" in finding.advice
    assert "It changes all 500000 rows" in finding.advice
    assert "embeddings_regularizer" not in finding.advice
    assert "MB of tensors" not in finding.advice


def test_one_finding_names_all_tables_as_one_edit_is_for_them_all() -> None:
    cost = make_embedding_cost(("regularizer", 2.0), ("update", 1.0))
    of_items = make_embedding_cost(("regularizer", 1.5), ("update", 0.5), layer="item")
    parts = {"parts": [*cost.parts, *of_items.parts]}
    session = session_with(
        {}, {"layer": "item", "rows": 60_000}, embedding_cost=cost.model_copy(update=parts)
    )
    finding = only(rule, session)

    assert finding.advice.startswith("Give `embedding`, `item` `activity_regularizer`")
    assert "adds all 560000 rows to the loss" in finding.advice
    assert "makes their gradients as large as the tables" in finding.advice
    assert "makes 1792 MB of tensors as large as the tables" in finding.advice
    assert finding.advice.endswith("That takes 5 ms of each step, 50 % of it.")
    assert finding.evidence["layer"] == "embedding, item"
    assert finding.evidence["rows"] == 560_000


def test_tables_with_one_and_tables_with_the_other_are_told_apart() -> None:
    advice = only(rule, session_with({}, {**CONSTRAINED, "layer": "item"})).advice

    assert "Give `embedding` `activity_regularizer`" in advice
    assert "The latter (L2) adds all 500000 rows" in advice
    assert "Leave `embeddings_constraint` (MaxNorm) of `item` out" in advice


def test_a_dense_update_without_either_passes() -> None:
    assert finding_with(regularizer=None).status == "pass"


def test_one_that_the_step_does_not_show_passes() -> None:
    assert finding_with(gradient="sparse", update="sparse").status == "pass"


def test_small_and_frozen_tables_do_not_count() -> None:
    assert finding_with(trainable=False).status == "not-applicable"
    assert only(rule, make_session()).status == "not-applicable"


def test_where_compute_or_input_decides_it_only_informs() -> None:
    waits = session_with(
        {}, breakdown=make_breakdown(off=0.0, input_wait=50.0, device_compute=40.0)
    )

    finding = only(rule, waits)
    assert (finding.status, finding.edit is not None) == ("informative", True)
    assert "deal with the input first" in only(rule, waits).advice


def test_what_was_not_measured_is_tried_however_little_of_the_step_is_compute() -> None:
    unknown = only(rule, session_with({}, breakdown=make_breakdown(off=0.0, device_compute=20.0)))
    assert (unknown.status, unknown.edit is not None) == ("informative", True)
    cost = make_embedding_cost(("regularizer", 0.1), ("gradient", 0.1), ("update", 0.1))
    little = only(rule, session_with({}, embedding_cost=cost))
    assert (little.status, little.edit is not None) == ("informative", True)


@pytest.mark.parametrize(
    ("missing", "said"),
    [("No graph tells.", "No graph tells."), (None, "How embedding is updated was not seen.")],
)
def test_a_step_that_was_not_read_is_inconclusive(missing: str | None, said: str) -> None:
    finding = finding_with(update=None, gradient=None, missing=missing)

    assert (finding.status, finding.advice) == ("inconclusive", said)


def test_what_the_profile_found_it_to_take() -> None:
    """A regulariser takes gradient and update along, a constraint does not. Of 10 ms."""
    cost = make_embedding_cost(("regularizer", 2.0), ("gradient", 1.0), ("update", 4.0))
    regularised = only(rule, session_with({}, embedding_cost=cost))
    constrained = only(rule, session_with(CONSTRAINED, embedding_cost=cost))

    assert regularised.advice.endswith("That takes 7 ms of each step, 70 % of it.")
    assert constrained.evidence["took_ms_per_step"] == 2.0
    assert regularised.speedup_at_most is not None
    assert constrained.speedup_at_most is not None
    assert regularised.speedup_at_most > constrained.speedup_at_most


LIMITS = [
    Limit(
        rule,
        rule.OPERATION_SHARE,
        lambda percent: only(
            rule,
            session_with(
                CONSTRAINED,
                embedding_cost=make_embedding_cost(("regularizer", percent / 10), ("rest", 5.0)),
            ),
        ),
        "fail",
        "informative",
    ),
    Limit(
        rule,
        rule.LARGE,
        lambda megabytes: finding_with(table_bytes=int(megabytes * 1e6)),
        "fail",
        "not-applicable",
    ),
    Limit(
        rule,
        rule.COMPUTE,
        lambda percent: only(
            rule,
            session_with(
                {}, breakdown=make_breakdown(off=0.0, input_wait=1.0, device_compute=percent)
            ),
        ),
        "fail",
        "informative",
    ),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_a_limit(limit: Limit) -> None:
    stands(limit)
