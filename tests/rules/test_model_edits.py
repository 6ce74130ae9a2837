from __future__ import annotations

import pytest

from pipediag.rules.model_edits import compiled_by_xla, in_sixteen_bits, several_steps_a_call
from pipediag.session.edits import Edit, SetModel
from pipediag.session.loops import Callback, KerasUse
from pipediag.session.model import Session
from tests.factories import make_keras, make_loop, make_session

LOGGER = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])


def session_with(keras: KerasUse | None) -> Session:
    return make_session(loops=[make_loop(keras=keras)])


def test_several_steps_a_call() -> None:
    assert several_steps_a_call(session_with(make_keras(callbacks=[LOGGER])), "rule") == Edit(
        id="rule",
        label="steps_per_execution=16 in compile",
        changes=(SetModel({"steps_per_execution": 16}),),
        caveat="Logger: called once in 16 steps.",
        once=True,
    )


def test_compiled_by_xla() -> None:
    assert compiled_by_xla(session_with(make_keras()), "rule") == Edit(
        id="rule",
        label="jit_compile=True in compile",
        changes=(SetModel({"jit_compile": True}),),
        caveat="Compiling itself, once for each shape, is no part of the step's figure.",
        once=True,
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
        once=True,
    )


def test_sixteen_bits_without_the_scaling_of_the_loss() -> None:
    edit = in_sixteen_bits(session_with(make_keras()), "rule", "mixed_float16")
    assert edit is not None
    assert edit.caveat == (
        "The model's last layer stays in float32. The scaling of the loss, which `compile` adds, "
        "is left out."
    )
    assert in_sixteen_bits(session_with(None), "rule", "mixed_float16") is None
