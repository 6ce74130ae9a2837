from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.embeddings import LARGE
from pipediag.facts.limits import OPERATION_SHARE
from pipediag.rules.embeddings import (
    DENSE_EMBEDDING_UPDATE,
    REGULARIZED_TABLE,
    TABLE_COPIED_ON_LOOKUP,
    UPDATE_COMPUTE,
)
from pipediag.session.edits import SetModel
from pipediag.session.embeddings import NO_PROGRAM
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from tests.factories import make_embedding, make_embedding_cost, make_keras, make_loop, make_session
from tests.records import make_breakdown, make_environment, make_steps
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import keeps_up, only, run

WIDE = {
    "rows": 500_000,
    "table_bytes": 128_000_000,
    "slot_bytes": 256_000_000,
    "gradient": "sparse",
    "update": "dense",
    "gradient_spread": True,
    "temporary_bytes": 1_280_000_000,
    "whole_table_operations": {"Mul": 3, "UnsortedSegmentSum": 2},
    "rows_touched_per_step": 2_502,
}


def update_session_with(*tables: dict[str, Any], **overrides: Any) -> Session:
    made = [make_embedding(**{**WIDE, **table}) for table in tables]
    usual = {**keeps_up(), "loops": [make_loop(keras=make_keras(optimizer="Adam"))]}
    return make_session(embeddings=made, **{**usual, **overrides})


def first_of(session: Session) -> Finding:
    """That of the way which is tried first."""
    return run(DENSE_EMBEDDING_UPDATE, session)[0]


def update_finding_with(**overrides: Any) -> Finding:
    return first_of(update_session_with(overrides))


def test_a_large_table_under_adam_fails_and_is_tried_row_by_row() -> None:
    finding = update_finding_with()

    assert (finding.status, finding.severity) == ("fail", "warn")
    assert finding.effect_on_results == "changes a hyper-parameter"
    assert finding.edit is not None
    assert finding.edit.changes == (SetModel({"optimizer": "row_wise"}),)
    assert finding.edit.label == "LazyAdam in place of Adam"
    assert finding.evidence["update_known_from"] == "the traced step"


ACCUMULATES = {"gradient_accumulation_steps": 4}


@pytest.mark.parametrize(
    ("keras", "slot_bytes", "untried"),
    [
        ({"optimizer": "Ftrl"}, 0, "no row-wise optimizer goes by the rule of Ftrl."),
        ({"optimizer": "LossScaleOptimizer"}, 0, "a trial does not scale the loss for it, as"),
        ({"optimizer": "Adam"}, 8 << 30, "there is no memory for a second set of slots, which a"),
        (
            {"optimizer": "Adam", "optimizer_settings": ACCUMULATES},
            0,
            "no row-wise optimizer accumulates gradients, as the model's own does. Leave `gradient",
        ),
    ],
)
def test_sgd_for_the_table_is_advised_and_tried_where_no_row_wise_one_can_be(
    keras: dict[str, Any], slot_bytes: int, untried: str
) -> None:
    loop = make_loop(keras=make_keras(**keras))
    session = update_session_with({"slot_bytes": slot_bytes}, loops=[loop])
    (finding,) = run(DENSE_EMBEDDING_UPDATE, session)

    assert finding.status == "fail"
    assert finding.edit is not None
    assert finding.edit.changes == (SetModel({"optimizer": "sgd_for_tables"}),)


def test_sgd_for_the_table_is_tried_behind_the_row_wise_one() -> None:
    adam = make_keras(optimizer="Adam", optimizer_settings={"weight_decay": 0.01})
    row_wise, sgd = run(
        DENSE_EMBEDDING_UPDATE, update_session_with({}, loops=[make_loop(keras=adam)])
    )

    assert row_wise.status == "fail"
    assert (sgd.status, sgd.effect_on_results) == ("informative", "changes a hyper-parameter")
    assert (sgd.file, sgd.line) == (row_wise.file, row_wise.line)
    assert row_wise.edit is not None
    assert sgd.edit is not None
    assert (row_wise.edit.id, sgd.edit.id) == (
        "embedding-update",
        "embedding-update:sgd",
    )
    assert (row_wise.edit.instead_of, sgd.edit.instead_of) == (None, row_wise.edit.id)
    assert sgd.edit.changes == (SetModel({"optimizer": "sgd_for_tables"}),)
    assert sgd.edit.caveat is not None
    assert sgd.edit.caveat.endswith("is not measured. Embeddings do not decay.")


def test_a_scaled_loss_is_not_scaled_under_sgd() -> None:
    scaled = make_keras(optimizer="LossScaleOptimizer")
    edit = first_of(update_session_with({}, loops=[make_loop(keras=scaled)])).edit

    assert edit is not None
    assert edit.caveat is not None
    assert edit.caveat.endswith("The loss is not scaled.")


def test_sparse_tables_pass_and_small_ones_are_tried() -> None:
    small = update_finding_with(table_bytes=9_000_000)
    assert (small.status, small.edit is not None) == ("informative", True)
    assert update_finding_with(update="sparse").status == "pass"


def test_a_small_table_whose_update_takes_a_part_of_the_step_that_matters_fails() -> None:
    """7.68 MB are less than are large; of a step of 10 ms."""
    cost = make_embedding_cost(("update", 5.0), ("gradient", 0.5), ("rest", 3.5))
    finding = first_of(update_session_with({"table_bytes": 7_680_000}, embedding_cost=cost))
    assert finding.status == "fail"


def test_an_update_that_the_profile_may_have_lost_is_not_said_to_take_little() -> None:
    cost = make_embedding_cost(("lookup", 0.1), ("not_told", 8.9), notes=[NO_PROGRAM])
    lost = first_of(update_session_with({"table_bytes": 7_680_000}, embedding_cost=cost))

    assert "took_percent_of_step" not in lost.evidence


def test_a_pass_does_not_deny_that_small_tables_are_updated_as_a_whole() -> None:
    small = {"table_bytes": 7_680_000}
    cost = make_embedding_cost(("update", 0.1), ("rest", 8.9))
    update_finding_with(**small)
    little = first_of(update_session_with(small, embedding_cost=cost))

    assert little.evidence["took_percent_of_step"] == 1.0


def test_tables_that_are_large_together_count() -> None:
    half = {"table_bytes": 6_000_000}
    assert first_of(update_session_with(half)).status == "informative"
    finding = first_of(update_session_with(half, {**half, "layer": "other"}))

    assert finding.status == "fail"


def test_a_small_table_beside_a_large_one_with_a_dense_gradient_does_not_fail() -> None:
    small = {"layer": "other", "table_bytes": 5_000}
    finding = first_of(update_session_with({"gradient": "dense"}, small))

    assert finding.status == "informative"
    assert finding.evidence["layer"] == "embedding"


@pytest.mark.parametrize(("megabytes", "status"), [(4.9, "informative"), (5.0, "fail")])
def test_from_which_size_on_what_the_profile_tells_counts(megabytes: float, status: str) -> None:
    """The update of smaller tables is no longer because of their rows."""
    cost = make_embedding_cost(("update", 5.0), ("rest", 4.0))
    table = {"table_bytes": int(megabytes * 1e6)}
    finding = first_of(update_session_with(table, embedding_cost=cost))

    assert finding.status == status
    if status == "informative":
        assert finding.title == "Embedding tables that are updated as a whole are small"


def test_one_finding_speaks_of_all_tables_of_the_optimizer() -> None:
    names = [{"layer": name, "temporary_bytes": 0} for name in "abcd"]
    finding = first_of(update_session_with(*names))

    assert finding.evidence["tables"] == 4


def test_a_pass_over_the_table_without_spreading_its_gradient_is_none_the_less_dense() -> None:
    finding = update_finding_with(gradient_spread=False, rows_touched_per_step=None)

    assert finding.status == "fail"


def test_a_gradient_as_large_as_the_table_only_informs() -> None:
    finding = update_finding_with(gradient="dense")

    assert (finding.status, finding.edit) == ("informative", None)


def test_update_where_compute_or_input_decides_it_only_informs() -> None:
    update_session_with({}, breakdown=make_breakdown(off=0.0, input_wait=1.0, device_compute=20.0))
    waits = update_session_with(
        {}, breakdown=make_breakdown(off=0.0, input_wait=50.0, device_compute=40.0)
    )

    finding = first_of(waits)
    assert (finding.status, finding.edit is not None) == ("informative", True)


def test_a_frozen_table_does_not_count() -> None:
    assert update_finding_with(trainable=False).status == "not-applicable"


@pytest.mark.parametrize(
    ("missing", "said"),
    [("No graph tells.", "No graph tells."), (None, "How embedding is updated was not seen.")],
)
def test_an_update_that_was_not_seen_is_inconclusive(missing: str | None, said: str) -> None:
    finding = update_finding_with(update=None, gradient=None, missing=missing)

    assert (finding.status, finding.advice) == ("inconclusive", said)


def test_without_tables() -> None:
    assert first_of(make_session()).status == "not-applicable"


def test_a_loop_of_one_s_own_has_an_optimizer_without_a_name_and_no_trial() -> None:
    own = [make_loop(kind="eager", keras=None)]
    finding = first_of(update_session_with({}, loops=own))

    assert finding.edit is None
    assert finding.trial.reason is not None


def test_another_keras_is_not_compiled_otherwise() -> None:
    session = update_session_with({}, environment=make_environment(legacy_keras=True))

    assert first_of(session).edit is None


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("momentum", "`pipediag.optimizers.LazySGD`"),
        ("weight_decay", 'exclude_from_weight_decay(var_names=["embeddings"])'),
        ("use_ema", "Leave `use_ema` out"),
        ("global_clipnorm", "Clip by `clipnorm`"),
        ("gradient_accumulation_steps", "take a larger batch"),
    ],
)
def test_an_argument_that_alone_makes_sgd_pass_over_the_table_is_named(
    argument: str, said: str
) -> None:
    sgd = make_keras(optimizer="SGD", optimizer_settings={argument: 2})
    finding = first_of(update_session_with({}, loops=[make_loop(keras=sgd)]))

    assert finding.evidence["optimizer_arguments"] == argument


def test_averages_of_the_weights_are_left_out_with_another_optimizer() -> None:
    adam = make_keras(optimizer="Adam", optimizer_settings={"use_ema": True})
    finding = first_of(update_session_with({}, loops=[make_loop(keras=adam)]))

    assert finding.edit is not None
    assert finding.edit.label == "LazyAdam in place of Adam, without `use_ema`"


def test_the_measured_share_says_what_it_takes_and_the_most_that_it_can_buy() -> None:
    """Of a step of 10 ms; on a CPU its dispatch goes along with the compute."""
    finding = first_of(
        update_session_with(
            {},
            embedding_cost=make_embedding_cost(("update", 5.0), ("gradient", 1.0), ("rest", 3.0)),
            breakdown=make_breakdown(off=0.0, device_compute=90.0, dispatch=5.0),
        ),
    )
    assert finding.status == "fail"
    assert finding.evidence["took_ms_per_step"] == 6.0
    assert finding.speedup_at_most == pytest.approx(100 / 35, abs=0.001)


def test_an_update_that_takes_little_only_informs_however_much_is_computed() -> None:
    cost = make_embedding_cost(("update", 0.3), ("rest", 8.7))
    busy = make_breakdown(off=0.0, device_compute=90.0)
    finding = first_of(update_session_with({}, embedding_cost=cost, breakdown=busy))
    assert finding.status == "informative"


def test_where_the_update_is_not_told_apart_all_compute_counts() -> None:
    cost = make_embedding_cost(("not_told", 9.0))
    finding = first_of(update_session_with({}, embedding_cost=cost))

    assert finding.status == "fail"
    assert "took_ms_per_step" not in finding.evidence
    assert finding.speedup_at_most is None  # as for any rule, from what the device computes


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


def terms_session_with(*tables: dict[str, Any], **overrides: Any) -> Session:
    made = [make_embedding(**{**REGULARISED, **table}) for table in tables]
    usual = {**keeps_up(), "loops": [make_loop(keras=make_keras(optimizer="SGD"))]}
    return make_session(embeddings=made, **{**usual, **overrides})


def terms_finding_with(**overrides: Any) -> Finding:
    return only(REGULARIZED_TABLE, terms_session_with(overrides))


def test_a_regulariser_over_a_large_table_fails() -> None:
    finding = terms_finding_with()

    assert (finding.status, finding.severity) == ("fail", "warn")
    assert finding.effect_on_results == "changes a hyper-parameter"
    assert finding.edit is not None
    assert finding.edit.changes == (SetModel({"table_terms_left_out": True}),)
    assert finding.edit.label == "no regulariser and no constraint on embeddings"


def test_it_stands_where_the_layer_was_made_or_else_at_the_loop() -> None:
    session = terms_session_with({"file": None}, {"file": "model.py", "line": 12})
    made = only(REGULARIZED_TABLE, session)
    loop = session.loops[0]
    unseen = terms_finding_with()

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
    finding = only(REGULARIZED_TABLE, terms_session_with({}, loops=loops))

    assert finding.edit is not None
    assert finding.edit.changes == (SetModel({"table_terms_left_out": True, "optimizer": used}),)


def test_a_loop_of_one_s_own_is_not_tried() -> None:
    finding = only(
        REGULARIZED_TABLE, terms_session_with({}, loops=[make_loop(kind="eager", keras=None)])
    )

    assert finding.edit is None
    assert finding.trial.reason is not None


def test_a_constraint_over_a_large_table_fails() -> None:
    finding = terms_finding_with(**CONSTRAINED, temporary_bytes=None)

    assert finding.status == "fail"


def test_one_finding_names_all_tables_as_one_edit_is_for_them_all() -> None:
    cost = make_embedding_cost(("regularizer", 2.0), ("update", 1.0))
    of_items = make_embedding_cost(("regularizer", 1.5), ("update", 0.5), layer="item")
    parts = {"parts": [*cost.parts, *of_items.parts]}
    session = terms_session_with(
        {}, {"layer": "item", "rows": 60_000}, embedding_cost=cost.model_copy(update=parts)
    )
    finding = only(REGULARIZED_TABLE, session)

    assert finding.evidence["layer"] == "embedding, item"
    assert finding.evidence["rows"] == 560_000


def test_a_dense_update_without_either_passes() -> None:
    assert terms_finding_with(regularizer=None).status == "pass"


def test_one_that_the_step_does_not_show_passes() -> None:
    assert terms_finding_with(gradient="sparse", update="sparse").status == "pass"


def test_small_and_frozen_tables_do_not_count() -> None:
    assert terms_finding_with(trainable=False).status == "not-applicable"
    assert only(REGULARIZED_TABLE, make_session()).status == "not-applicable"


def test_terms_where_compute_or_input_decides_it_only_informs() -> None:
    waits = terms_session_with(
        {}, breakdown=make_breakdown(off=0.0, input_wait=50.0, device_compute=40.0)
    )

    finding = only(REGULARIZED_TABLE, waits)
    assert (finding.status, finding.edit is not None) == ("informative", True)


def test_what_was_not_measured_is_tried_however_little_of_the_step_is_compute() -> None:
    unknown = only(
        REGULARIZED_TABLE,
        terms_session_with({}, breakdown=make_breakdown(off=0.0, device_compute=20.0)),
    )
    assert (unknown.status, unknown.edit is not None) == ("informative", True)
    cost = make_embedding_cost(("regularizer", 0.1), ("gradient", 0.1), ("update", 0.1))
    little = only(REGULARIZED_TABLE, terms_session_with({}, embedding_cost=cost))
    assert (little.status, little.edit is not None) == ("informative", True)


@pytest.mark.parametrize(
    ("missing", "said"),
    [("No graph tells.", "No graph tells."), (None, "How embedding is updated was not seen.")],
)
def test_a_step_that_was_not_read_is_inconclusive(missing: str | None, said: str) -> None:
    finding = terms_finding_with(update=None, gradient=None, missing=missing)

    assert (finding.status, finding.advice) == ("inconclusive", said)


def test_what_the_profile_found_it_to_take() -> None:
    """A regulariser takes gradient and update along, a constraint does not. Of 10 ms."""
    cost = make_embedding_cost(("regularizer", 2.0), ("gradient", 1.0), ("update", 4.0))
    regularised = only(REGULARIZED_TABLE, terms_session_with({}, embedding_cost=cost))
    constrained = only(REGULARIZED_TABLE, terms_session_with(CONSTRAINED, embedding_cost=cost))

    assert constrained.evidence["took_ms_per_step"] == 2.0
    assert regularised.speedup_at_most is not None
    assert constrained.speedup_at_most is not None
    assert regularised.speedup_at_most > constrained.speedup_at_most


TERMS_LIMITS = [
    Limit(
        REGULARIZED_TABLE,
        OPERATION_SHARE,
        lambda percent: only(
            REGULARIZED_TABLE,
            terms_session_with(
                CONSTRAINED,
                embedding_cost=make_embedding_cost(("regularizer", percent / 10), ("rest", 5.0)),
            ),
        ),
        "fail",
        "informative",
    ),
    Limit(
        REGULARIZED_TABLE,
        LARGE,
        lambda megabytes: terms_finding_with(table_bytes=int(megabytes * 1e6)),
        "fail",
        "not-applicable",
    ),
    Limit(
        REGULARIZED_TABLE,
        UPDATE_COMPUTE,
        lambda percent: only(
            REGULARIZED_TABLE,
            terms_session_with(
                {}, breakdown=make_breakdown(off=0.0, input_wait=1.0, device_compute=percent)
            ),
        ),
        "fail",
        "informative",
    ),
]


@pytest.mark.parametrize("limit", TERMS_LIMITS, ids=names_of(TERMS_LIMITS))
def test_terms_a_limit(limit: Limit) -> None:
    stands(limit)


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


def copy_session_with(*tables: dict[str, Any], **overrides: Any) -> Session:
    made = [make_embedding(**{**COPIED, **table}) for table in tables]
    usual = {**keeps_up(), "loops": [make_loop(keras=make_keras(optimizer="SGD"))]}
    return make_session(embeddings=made, **{**usual, **overrides})


def copy_finding_with(**overrides: Any) -> Finding:
    return only(TABLE_COPIED_ON_LOOKUP, copy_session_with(overrides))


def test_a_copy_that_takes_a_part_of_the_step_fails_and_is_tried_with_xla() -> None:
    finding = copy_finding_with()

    assert (finding.status, finding.severity) == ("fail", "warn")
    assert finding.edit is not None
    assert finding.edit.changes == (SetModel({"jit_compile": True}),)
    assert finding.evidence["copied_bytes_per_step"] == 128_000_000


def test_a_table_that_is_read_as_a_whole_but_not_copied_passes() -> None:
    """As under XLA, under Adam, which writes the table in full, or where it is frozen."""
    assert copy_finding_with(**NOT_COPIED).status == "pass"


def test_a_small_table_does_not_count() -> None:
    assert copy_finding_with(table_bytes=9_000_000).status == "not-applicable"
    assert only(TABLE_COPIED_ON_LOOKUP, make_session()).status == "not-applicable"


def test_a_cast_of_the_whole_table() -> None:
    finding = copy_finding_with(**NOT_COPIED, whole_table_operations={"Cast": 2})

    assert finding.status == "fail"
    assert finding.evidence["cast_bytes_per_step"] == 256_000_000


def test_a_copy_on_a_gpu_is_quick() -> None:
    finding = copy_finding_with(device="/job:localhost/replica:0/task:0/device:GPU:0")

    # By rates that are taken for granted, so that a trial tells.
    assert (finding.status, finding.edit is not None) == ("informative", True)


def test_a_dense_update_comes_first() -> None:
    finding = copy_finding_with(update="dense")

    assert finding.status == "informative"


def test_where_the_input_decides_it_only_informs() -> None:
    waits = copy_session_with({}, breakdown=make_breakdown(input_wait=50.0, device_compute=40.0))

    finding = only(TABLE_COPIED_ON_LOOKUP, waits)
    assert (finding.status, finding.edit is not None) == ("informative", True)


def test_a_loop_of_one_s_own_has_no_trial() -> None:
    finding = only(
        TABLE_COPIED_ON_LOOKUP, copy_session_with({}, loops=[make_loop(kind="eager", keras=None)])
    )

    assert finding.status == "fail"
    assert finding.edit is None
    assert finding.trial.reason is not None


@pytest.mark.parametrize(
    ("missing", "said"),
    [("No graph tells.", "No graph tells."), (None, "How embedding is looked up was not seen.")],
)
def test_a_lookup_that_was_not_seen_is_inconclusive(missing: str | None, said: str) -> None:
    finding = copy_finding_with(copied_bytes_per_step=None, copied_on_lookup=None, missing=missing)

    assert (finding.status, finding.advice) == ("inconclusive", said)


def test_a_copy_that_the_profile_timed_goes_before_the_reckoned_one() -> None:
    """Reckoned, 128 MB would take more than the step of 10 ms."""
    little = copy_session_with({}, embedding_cost=make_embedding_cost(("copy", 0.2), ("rest", 8.0)))
    much = copy_session_with({}, embedding_cost=make_embedding_cost(("copy", 5.0), ("rest", 4.0)))

    assert only(TABLE_COPIED_ON_LOOKUP, little).status == "informative"
    finding = only(TABLE_COPIED_ON_LOOKUP, much)
    assert finding.status == "fail"
    assert finding.evidence["copy_ms_per_step"] == 5.0
    assert finding.evidence["copy_percent_of_step"] == 50.0
    assert finding.speedup_at_most is not None
    assert finding.speedup_at_most >= 2.0


COPY_LIMITS = [
    Limit(
        TABLE_COPIED_ON_LOOKUP,
        LARGE,
        lambda megabytes: copy_finding_with(
            table_bytes=int(megabytes * 1e6), copied_bytes_per_step=int(megabytes * 1e6)
        ),
        "fail",
        "not-applicable",
    ),
    Limit(
        TABLE_COPIED_ON_LOOKUP,
        OPERATION_SHARE,
        lambda percent: only(
            TABLE_COPIED_ON_LOOKUP,
            copy_session_with({}, steps=make_steps(mean_ms=12.8 * 100 / percent)),
        ),
        "fail",
        "informative",
    ),
]


@pytest.mark.parametrize("limit", COPY_LIMITS, ids=names_of(COPY_LIMITS))
def test_copy_a_limit(limit: Limit) -> None:
    stands(limit)
