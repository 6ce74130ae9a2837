from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from pipediag.rules.model_inputs import CAVEAT, KEPT_TITLE, PADDING, PREPROCESSING_IN_MODEL
from pipediag.session.edits import Edit, MoveLayers, Replace
from pipediag.session.embeddings import TextWork
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import InputLayer
from tests.factories import make_embedding, make_keras, make_loop, make_session
from tests.records import make_breakdown, make_function, make_operation
from tests.rules.ids import make_ids
from tests.rules.sessions import batch, keeps_up, only, run, session_of, source

WORDS = InputLayer(name="to_ids", kind="TextVectorization", behind_input=True, handed_on=True)
DAYS = InputLayer(name="days", kind="StringLookup", behind_input=True, handed_on=False)
CODES = InputLayer(name="codes", kind="CategoryEncoding", behind_input=True, handed_on=True)
DEEP = InputLayer(name="deep", kind="Hashing", behind_input=False, handed_on=False)
SCALED = InputLayer(name="scaled", kind="Normalization", behind_input=True, handed_on=True)


def layers_session_with(*layers: InputLayer, unsplit: str | None = None, **more: Any) -> Session:
    keras = make_keras(input_layers=list(layers), unsplit=unsplit)
    ops = (
        make_operation("op1", "from_tensor_slices"),
        make_operation("op2", "batch", line=22),
        make_operation("op3", "prefetch"),
    )
    return session_of(*ops, **{"loops": [make_loop(keras=keras)], **keeps_up(), **more})


def test_the_layer_is_named_and_tried_behind_the_batch() -> None:
    finding = only(PREPROCESSING_IN_MODEL, layers_session_with(WORDS))
    assert (finding.status, finding.severity, finding.line) == ("informative", "info", 20)
    assert finding.evidence["layers"] == "to_ids (TextVectorization)"
    assert finding.edit == Edit(
        id="preprocessing-in-model",
        label="`to_ids` in a map behind the batch in line 22, and not in the model",
        changes=(MoveLayers(("to_ids",), "op2"),),
        caveat=CAVEAT,
    )
    assert finding.effect_on_results == "same results"


def test_several_layers_move_together_and_those_further_down_stay() -> None:
    finding = only(PREPROCESSING_IN_MODEL, layers_session_with(WORDS, DAYS, CODES, DEEP))
    assert finding.edit is not None
    assert finding.edit.changes == (MoveLayers(("to_ids", "days", "codes"), "op2"),)


def test_a_model_that_can_not_be_split_gets_advice_alone() -> None:
    finding = only(
        PREPROCESSING_IN_MODEL, layers_session_with(DEEP, unsplit="`Own` is a class of its own.")
    )
    assert (finding.status, finding.edit) == ("informative", None)


def test_layers_behind_others_get_advice_alone() -> None:
    finding = only(PREPROCESSING_IN_MODEL, layers_session_with(DEEP))
    assert (finding.status, finding.edit) == ("informative", None)


def test_a_pipeline_that_was_not_recorded_gets_advice_alone() -> None:
    session = layers_session_with(WORDS).model_copy(update={"pipeline": None})
    finding = only(PREPROCESSING_IN_MODEL, session)
    assert (finding.status, finding.edit) == ("informative", None)


def test_arithmetic_alone_is_left_where_it_is() -> None:
    finding = only(PREPROCESSING_IN_MODEL, layers_session_with(SCALED))
    assert (finding.status, finding.edit) == ("pass", None)
    beside = only(PREPROCESSING_IN_MODEL, layers_session_with(WORDS, SCALED))
    assert beside.edit is not None
    assert beside.edit.changes == (MoveLayers(("to_ids", "scaled"), "op2"),)


def test_while_the_input_is_the_bottleneck_it_informs_and_is_tried() -> None:
    finding = only(PREPROCESSING_IN_MODEL, layers_session_with(WORDS, breakdown=make_breakdown()))
    assert (finding.status, finding.edit is not None) == ("informative", True)


@pytest.mark.parametrize("keras", [None, make_keras()])
def test_without_such_layers_there_is_nothing_to_say(keras: Any) -> None:
    session = session_of(make_operation("op1", "batch"), loops=[make_loop(keras=keras)])
    assert only(PREPROCESSING_IN_MODEL, session).status == "not-applicable"


SPLITS = TextWork(percent=40.0, ms=4.0, operations={"StringSplitV2": 30.0, "LookupTableFindV2": 10})


def test_layers_that_take_a_part_of_the_step_fail_and_are_tried() -> None:
    finding = only(PREPROCESSING_IN_MODEL, layers_session_with(WORDS, text_work=SPLITS))
    assert finding.status == "fail"
    assert finding.edit is not None
    assert finding.evidence["text_work_percent_of_step"] == 40.0
    # On a CPU dispatch goes along.
    assert finding.speedup_at_most == pytest.approx(1.695)


def test_text_work_of_own_code_is_found_by_its_operations() -> None:
    session = layers_session_with(
        text_work=SPLITS, loops=[make_loop(keras=None, kind="tf_function")]
    )
    finding = only(PREPROCESSING_IN_MODEL, session)
    assert (finding.status, finding.edit) == ("fail", None)
    assert finding.trial.reason is not None
    assert "by hand" in finding.trial.reason


def test_little_text_work_of_own_code_is_nothing_to_say() -> None:
    little = TextWork(percent=3.0, ms=0.3, operations={"StringSplitV2": 3.0})
    session = layers_session_with(text_work=little, loops=[make_loop(keras=None)])
    assert only(PREPROCESSING_IN_MODEL, session).status == "not-applicable"


LENGTH_64 = replace(WORDS, row_bytes=512)
TEXTS = make_operation(
    "texts",
    "from_tensor_slices",
    line=21,
    cardinality=2560,
    elements=32.0,
    bytes_per_element=None,
)
SHUFFLE = make_operation("shuffle", "shuffle", line=22, cardinality=2560)
REPEAT = make_operation("repeat", "repeat", line=22, parameters={"count": 200}, cardinality=512_000)
BATCH = make_operation("batch", "batch", line=22, parameters={"batch_size": 256}, elements=1.0)
AHEAD = make_operation("ahead", "prefetch", line=23)


def of_passes(*ops: Operation, layer: InputLayer = LENGTH_64, **more: Any) -> Session:
    keras = make_keras(input_layers=[layer], epochs=more.pop("epochs", 1))
    return session_of(*ops, **{"loops": [make_loop(keras=keras)], **keeps_up(), **more})


def test_what_several_passes_prepare_alike_is_kept_above_the_shuffle() -> None:
    session = of_passes(TEXTS, SHUFFLE, REPEAT, BATCH, AHEAD, text_work=SPLITS)
    kept, moved = run(PREPROCESSING_IN_MODEL, session)
    assert moved.edit is not None
    assert moved.edit.changes == (MoveLayers(("to_ids",), "batch"),)
    assert (kept.status, kept.title, kept.line) == ("fail", KEPT_TITLE, moved.line)
    assert kept.edit is not None
    assert kept.edit.id == "preprocessing-in-model:texts"
    (change,) = kept.edit.changes
    assert isinstance(change, MoveLayers)
    assert (change.after, change.rows) == ("texts", 256)
    assert change.kept is not None
    assert 256 < change.kept <= 2560
    assert kept.evidence["cache_bytes"] == pytest.approx(2560 * 512, rel=0.01)
    assert kept.evidence["passes_over_data"] == 200


def test_batches_that_no_shuffle_mixes_are_kept_as_they_are() -> None:
    batch = BATCH.model_copy(update={"cardinality": 10})
    kept, _ = run(PREPROCESSING_IN_MODEL, of_passes(TEXTS, batch, AHEAD, epochs=4))
    assert kept.edit is not None
    assert kept.edit.changes == (MoveLayers(("to_ids",), "batch", None, 10),)
    assert kept.evidence["cache_bytes"] == pytest.approx(10 * 32 * 512, rel=0.01)


RANDOM = make_operation(
    "map", "map", line=21, function=make_function(graph_ops={"RandomUniform": 1})
)
PLAIN = make_operation("map", "map", line=21, function=make_function())
CACHE = make_operation("cache", "cache", line=21)


@pytest.mark.parametrize(
    ("ops", "more"),
    [
        ((TEXTS, SHUFFLE, BATCH), {"epochs": 1}),
        ((TEXTS, RANDOM, SHUFFLE, REPEAT, BATCH), {}),
        ((TEXTS, SHUFFLE, PLAIN, REPEAT, BATCH), {}),
        ((TEXTS, CACHE, SHUFFLE, REPEAT, BATCH), {}),
        ((TEXTS, SHUFFLE, REPEAT, BATCH), {"layer": WORDS}),
        (
            (
                TEXTS.model_copy(update={"cardinality": 10**12}),
                SHUFFLE.model_copy(update={"cardinality": 10**12}),
                REPEAT,
                BATCH,
            ),
            {},
        ),
    ],
    ids=["one pass", "random", "map behind the shuffle", "cached", "size unknown", "too large"],
)
def test_nothing_is_kept(ops: tuple[Operation, ...], more: dict[str, Any]) -> None:
    (moved,) = run(PREPROCESSING_IN_MODEL, of_passes(*ops, **more))
    assert moved.edit is not None
    assert moved.edit.id == "preprocessing-in-model"


VARYING = (
    "(TensorSpec(shape=(None, None), dtype=tf.int32, name=None), "
    "TensorSpec(shape=(None,), dtype=tf.float32, name=None))"
)
FIXED = "TensorSpec(shape=(None, 40), dtype=tf.int32, name=None)"


def padding_session_with(
    element_spec: str | None = VARYING, compute: float = 80.0, **overrides: Any
) -> Session:
    padded = make_operation("padded", "padded_batch", line=7, parameters={"batch_size": 32})
    breakdown = make_breakdown(input_wait=5.0, device_compute=compute)
    loops = [make_loop(element_spec=element_spec)]
    values = {"breakdown": breakdown, "loops": loops, **overrides}
    return session_of(source(), padded, **values)


def test_varying_lengths_are_tried_in_buckets() -> None:
    finding = only(PADDING, padding_session_with())
    assert (finding.status, finding.line) == ("informative", 7)
    assert finding.effect_on_results == "same up to order or rounding"
    assert finding.edit == Edit(
        id="padding:padded",
        label="4 buckets of lengths in place of the padded_batch in line 7",
        changes=(Replace("padded", "bucket_by_sequence_length", {"buckets": 4}),),
        check="shape",
    )


@pytest.mark.parametrize(
    "session",
    [
        padding_session_with(FIXED),
        padding_session_with("TensorSpec(shape=(None,), dtype=tf.int32, name=None)"),
        padding_session_with(compute=4.9),
    ],
)
def test_near_misses_pass(session: Session) -> None:
    assert only(PADDING, session).status == "pass"


def test_while_the_input_is_the_bottleneck_it_is_tried_all_the_same() -> None:
    shares = make_breakdown(input_wait=60.0, device_compute=40.0)
    finding = only(PADDING, padding_session_with(breakdown=shares))
    assert (finding.status, finding.edit is not None) == ("informative", True)


@pytest.mark.parametrize(
    ("percent", "mask_zero", "said"),
    [
        (6.2, True, None),
        (10.0, True, "10 % of the ids are padding: give"),
        (62.0, True, "62 % of the ids are padding: give"),
        (62.0, False, "If lengths differ much, give"),
    ],
)
def test_what_the_ids_of_batches_say_of_padding(
    percent: float, mask_zero: bool, said: str | None
) -> None:
    ids = make_ids(zero_percent=percent)
    table = make_embedding(ids=ids, mask_zero=mask_zero)
    finding = only(PADDING, padding_session_with(embeddings=[table]))

    assert finding.status == ("informative" if said else "pass")


def test_without_padding_or_a_spec() -> None:
    assert only(PADDING, session_of(source(), batch())).status == "not-applicable"
    assert only(PADDING, padding_session_with(None)).status == "inconclusive"
    assert only(PADDING, make_session(pipeline=None)).status == "inconclusive"


def of_one_length(zeros: float = 40.0, compute: float = 80.0, **table: Any) -> Finding:
    """Batches that no operation of the pipeline pads."""
    ids = make_ids(zero_percent=zeros, zero_is_a_token=table.pop("zero_is_a_token", None))
    breakdown = make_breakdown(input_wait=5.0, device_compute=compute)
    loop = make_loop(element_spec=table.pop("element_spec", "TensorSpec(shape=(64, 200))"))
    tables = [make_embedding(**{"mask_zero": True, "ids": ids, **table})]
    session = session_of(source(), batch(), embeddings=tables, breakdown=breakdown, loops=[loop])
    return only(PADDING, session)


def test_padding_to_one_fixed_length_is_told_with_its_share() -> None:
    finding = of_one_length()

    assert finding.status == "informative"
    assert finding.edit is None
    of_one_length(mask_zero=False, zero_is_a_token=False)


@pytest.mark.parametrize("spec", ["TensorSpec(shape=(64, None))", "TensorSpec(shape=(None, None))"])
def test_lengths_that_vary_without_a_padded_batch_are_no_fixed_one(spec: str) -> None:
    assert of_one_length(element_spec=spec).status == "not-applicable"
    assert of_one_length(element_spec=None).status == "not-applicable"


def test_a_fixed_padded_batch_is_one() -> None:
    ids = make_ids(zero_percent=62.0)
    tables = [make_embedding(mask_zero=True, ids=ids)]
    finding = only(PADDING, padding_session_with(FIXED, embeddings=tables))

    assert (finding.status, finding.line) == ("informative", 7)


def test_zeros_that_are_few_or_that_nobody_says_are_padding() -> None:
    assert of_one_length(zeros=6.2).status == "pass"
    assert of_one_length(compute=12.4).status == "pass"
    assert of_one_length(mask_zero=False).status == "not-applicable"
    assert of_one_length(mask_zero=False, zero_is_a_token=True).status == "not-applicable"
    assert of_one_length(zero_is_a_token=True).status == "not-applicable"
