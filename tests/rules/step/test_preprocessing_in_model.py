from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.step import preprocessing_in_model as rule
from pipediag.session.edits import Edit, MoveLayers
from pipediag.session.loops import InputLayer
from pipediag.session.model import Session
from pipediag.session.text_work import TextWork
from tests.factories import make_keras, make_loop
from tests.records import make_breakdown, make_operation
from tests.rules.sessions import keeps_up, only, session_of

WORDS = InputLayer(name="to_ids", kind="TextVectorization", behind_input=True, handed_on=True)
DAYS = InputLayer(name="days", kind="StringLookup", behind_input=True, handed_on=False)
CODES = InputLayer(name="codes", kind="CategoryEncoding", behind_input=True, handed_on=True)
DEEP = InputLayer(name="deep", kind="Hashing", behind_input=False, handed_on=False)
SCALED = InputLayer(name="scaled", kind="Normalization", behind_input=True, handed_on=True)


def session_with(*layers: InputLayer, unsplit: str | None = None, **more: Any) -> Session:
    keras = make_keras(input_layers=list(layers), unsplit=unsplit)
    ops = (
        make_operation("op1", "from_tensor_slices"),
        make_operation("op2", "batch", line=22),
        make_operation("op3", "prefetch"),
    )
    return session_of(*ops, **{"loops": [make_loop(keras=keras)], **keeps_up(), **more})


def test_the_layer_is_named_and_tried_behind_the_batch() -> None:
    finding = only(rule, session_with(WORDS))
    assert (finding.status, finding.severity, finding.line) == ("informative", "info", 20)
    assert finding.evidence["layers"] == "to_ids (TextVectorization)"
    assert '`prepared = model.get_layer("to_ids").output`' in finding.advice
    assert "`dataset.map(lambda x, y: (prepare(x), y)" in finding.advice
    assert "behind `batch` at line 22" in finding.advice
    assert finding.edit == Edit(
        id="preprocessing-in-model",
        label="`to_ids` in a map behind the batch in line 22, and not in the model",
        changes=(MoveLayers(("to_ids",), "op2"),),
        caveat=rule.CAVEAT,
        once=True,
    )
    assert finding.effect_on_results == "same results"


def test_several_layers_move_together_and_those_further_down_stay() -> None:
    finding = only(rule, session_with(WORDS, DAYS, CODES, DEEP))
    assert finding.edit is not None
    assert finding.edit.changes == (MoveLayers(("to_ids", "days", "codes"), "op2"),)
    assert "`to_ids` (TextVectorization) and `days` (StringLookup) and" in finding.advice
    assert 'for name in ("to_ids", "codes")]`' in finding.advice
    assert "(tuple(prepare(x)), y)" in finding.advice


def test_a_model_that_can_not_be_split_gets_advice_alone() -> None:
    finding = only(rule, session_with(DEEP, unsplit="`Own` is a class of its own."))
    assert (finding.status, finding.edit) == ("informative", None)
    assert "`Own` is a class of its own. So no trial was made: take the calls" in finding.advice


def test_layers_behind_others_get_advice_alone() -> None:
    finding = only(rule, session_with(DEEP))
    assert (finding.status, finding.edit) == ("informative", None)
    assert "do not stand directly behind the model's inputs" in finding.advice


def test_a_pipeline_that_was_not_recorded_gets_advice_alone() -> None:
    session = session_with(WORDS).model_copy(update={"pipeline": None})
    finding = only(rule, session)
    assert (finding.status, finding.edit) == ("informative", None)
    assert "were not recorded" in finding.advice


def test_arithmetic_alone_is_left_where_it_is() -> None:
    finding = only(rule, session_with(SCALED))
    assert (finding.status, finding.edit) == ("pass", None)
    beside = only(rule, session_with(WORDS, SCALED))
    assert beside.edit is not None
    assert beside.edit.changes == (MoveLayers(("to_ids", "scaled"), "op2"),)


def test_while_the_input_is_the_bottleneck_it_passes() -> None:
    finding = only(rule, session_with(WORDS, breakdown=make_breakdown()))
    assert (finding.status, finding.edit) == ("pass", None)
    assert "deal with the input first" in finding.advice


@pytest.mark.parametrize("keras", [None, make_keras()])
def test_without_such_layers_there_is_nothing_to_say(keras: Any) -> None:
    session = session_of(make_operation("op1", "batch"), loops=[make_loop(keras=keras)])
    assert only(rule, session).status == "not-applicable"


SPLITS = TextWork(percent=40.0, ms=4.0, operations={"StringSplitV2": 30.0, "LookupTableFindV2": 10})


def test_layers_that_take_a_part_of_the_step_fail_and_are_tried() -> None:
    finding = only(rule, session_with(WORDS, text_work=SPLITS))
    assert finding.status == "fail"
    assert finding.edit is not None
    assert finding.evidence["text_work_percent_of_step"] == 40.0
    assert finding.speedup_at_most == pytest.approx(100 / 60)


def test_text_work_of_own_code_is_found_by_its_operations() -> None:
    session = session_with(text_work=SPLITS, loops=[make_loop(keras=None, kind="tf_function")])
    finding = only(rule, session)
    assert (finding.status, finding.edit) == ("fail", None)
    assert "`StringSplitV2`, `LookupTableFindV2` take 40 % of each step" in finding.advice
    assert "behind `batch` at line 22" in finding.advice
    assert finding.trial.reason is not None
    assert "by hand" in finding.trial.reason


def test_little_text_work_of_own_code_is_nothing_to_say() -> None:
    little = TextWork(percent=3.0, ms=0.3, operations={"StringSplitV2": 3.0})
    session = session_with(text_work=little, loops=[make_loop(keras=None)])
    assert only(rule, session).status == "not-applicable"
