from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.rules.model_edits import (
    SLOTS_TWICE,
    compiled_by_xla,
    in_sixteen_bits,
    no_optimizer_edit,
    row_wise_update,
    several_steps_a_call,
    sgd_for_tables,
    without_table_terms,
)
from pipediag.session.edits import Edit, SetModel
from pipediag.session.model import Session
from pipediag.session.recorded_loops import Callback, KerasUse
from tests.factories import make_embedding, make_keras, make_loop, make_session
from tests.records import make_environment

LOGGER = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])


def session_with(keras: KerasUse | None) -> Session:
    return make_session(loops=[make_loop(keras=keras)])


def test_several_steps_a_call() -> None:
    assert several_steps_a_call(session_with(make_keras(callbacks=[LOGGER])), "rule") == Edit(
        id="rule",
        label="steps_per_execution=16 in compile",
        changes=(SetModel({"steps_per_execution": 16}),),
        caveat="Logger: called once in 16 steps.",
    )


def test_compiled_by_xla() -> None:
    assert compiled_by_xla(session_with(make_keras()), "rule") == Edit(
        id="rule",
        label="jit_compile=True in compile",
        changes=(SetModel({"jit_compile": True}),),
        caveat="Compiling itself, once for each shape, is no part of the step's figure.",
    )


@pytest.mark.parametrize(
    "keras", [None, make_keras(jit_compile=True), make_keras(run_eagerly=True)]
)
def test_not_where_xla_compiles_or_can_not(keras: KerasUse | None) -> None:
    assert compiled_by_xla(session_with(keras), "rule") is None


@pytest.mark.parametrize("keras", [None, make_keras(steps_per_execution=2)])
def test_not_where_steps_share_calls(keras: KerasUse | None) -> None:
    assert several_steps_a_call(session_with(keras), "rule") is None


def test_sixteen_bits() -> None:
    assert in_sixteen_bits(session_with(make_keras()), "rule", "mixed_bfloat16") == Edit(
        id="rule",
        label="mixed_bfloat16 for all layers but the last",
        changes=(SetModel({"dtype_policy": "mixed_bfloat16"}),),
        caveat="The model's last layer stays in float32.",
    )


def test_sixteen_bits_without_the_scaling_of_the_loss() -> None:
    edit = in_sixteen_bits(session_with(make_keras()), "rule", "mixed_float16")
    assert edit is not None
    assert edit.caveat == (
        "The model's last layer stays in float32. The scaling of the loss, which `compile` adds, "
        "is left out."
    )
    assert in_sixteen_bits(session_with(None), "rule", "mixed_float16") is None


MEMORY = 8 << 30
MOST = int(SLOTS_TWICE * MEMORY)


def with_slots(of_tables: int, of_all_else: int, optimizer: str = "Adam") -> Session:
    """On a machine with `MEMORY`."""
    keras = make_keras(optimizer=optimizer, optimizer_bytes=of_tables + of_all_else)
    return make_session(
        loops=[make_loop(keras=keras)],
        embeddings=[make_embedding(slot_bytes=of_tables)],
        environment=make_environment(memory_bytes=MEMORY),
        host=None,
    )


def optimizer_of(edit: Edit | None) -> object:
    if edit is None:
        return None
    (change,) = edit.changes
    assert isinstance(change, SetModel)
    return change.settings.get("optimizer")


@pytest.mark.parametrize(
    ("of_tables", "of_all_else", "first", "second"),
    [
        (MOST // 2, MOST // 2, "row_wise", "sgd_for_tables"),
        (MOST // 2, MOST // 2 + 1, "sgd_for_tables", "sgd_for_tables"),
        (MOST + 1, MOST, "sgd_for_tables", "sgd_for_tables"),
        (1, MOST + 1, None, None),
    ],
)
def test_all_that_a_second_optimizer_keeps_has_to_fit(
    of_tables: int, of_all_else: int, first: str | None, second: str | None
) -> None:
    """Row by row it keeps slots of every variable; plain for the tables, those of all else."""
    session = with_slots(of_tables, of_all_else)

    assert optimizer_of(row_wise_update(session, "rule")) == first
    assert optimizer_of(sgd_for_tables(session, "rule")) == second


def test_an_optimizer_that_was_not_built_yet_has_at_least_the_slots_of_the_tables() -> None:
    session = with_slots(MOST + 1, -MOST)

    assert optimizer_of(row_wise_update(session, "rule")) == "sgd_for_tables"


def test_terms_are_left_out_without_a_second_optimizer_where_none_is_needed() -> None:
    kept = with_slots(1, MOST + 1)
    needed = without_table_terms(kept, "rule")
    by_rows = without_table_terms(with_slots(0, MOST + 1, "SGD"), "rule")

    assert (needed, by_rows and by_rows.changes) == (
        None,
        (SetModel({"table_terms_left_out": True}),),
    )


def test_a_model_is_of_keras_3_beside_a_library_that_imports_tf_keras() -> None:
    session = with_slots(1, 1)
    beside = session.model_copy(update={"environment": make_environment(legacy_keras=True)})

    def of(*, legacy: bool) -> Session:
        loops = [
            loop.model_copy(update={"keras": replace(loop.keras, legacy=legacy)})
            for loop in beside.loops
            if loop.keras is not None
        ]
        return beside.model_copy(update={"loops": loops})

    assert row_wise_update(beside, "rule") is None
    assert row_wise_update(of(legacy=True), "rule") is None
    assert row_wise_update(of(legacy=False), "rule") == row_wise_update(session, "rule")


def test_why_no_optimizer_is_tried() -> None:
    full = with_slots(1, MOST + 1)
    legacy = full.model_copy(update={"environment": make_environment(legacy_keras=True)})

    assert "Your own training loop" in no_optimizer_edit(session_with(None))
    assert "one of `tf_keras`" in no_optimizer_edit(legacy)
    assert "no memory for a second set" in no_optimizer_edit(full)
