from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.step import padding
from pipediag.session.edits import Edit, Replace
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from tests.factories import make_embedding, make_loop, make_session
from tests.records import make_breakdown, make_operation
from tests.rules.embedding.sessions import make_ids
from tests.rules.sessions import batch, only, session_of, source

VARYING = (
    "(TensorSpec(shape=(None, None), dtype=tf.int32, name=None), "
    "TensorSpec(shape=(None,), dtype=tf.float32, name=None))"
)
FIXED = "TensorSpec(shape=(None, 40), dtype=tf.int32, name=None)"


def session_with(
    element_spec: str | None = VARYING, compute: float = 80.0, **overrides: Any
) -> Session:
    padded = make_operation("padded", "padded_batch", line=7, parameters={"batch_size": 32})
    breakdown = make_breakdown(input_wait=5.0, device_compute=compute)
    loops = [make_loop(element_spec=element_spec)]
    values = {"breakdown": breakdown, "loops": loops, **overrides}
    return session_of(source(), padded, **values)


def test_varying_lengths_are_tried_in_buckets() -> None:
    finding = only(padding, session_with())
    assert (finding.status, finding.line) == ("informative", 7)
    assert "bucket_by_sequence_length" in finding.advice
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
        session_with(FIXED),
        session_with("TensorSpec(shape=(None,), dtype=tf.int32, name=None)"),
        session_with(compute=4.9),
    ],
)
def test_near_misses_pass(session: Session) -> None:
    assert only(padding, session).status == "pass"


def test_while_the_input_is_the_bottleneck_it_is_tried_all_the_same() -> None:
    shares = make_breakdown(input_wait=60.0, device_compute=40.0)
    finding = only(padding, session_with(breakdown=shares))
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
    finding = only(padding, session_with(embeddings=[table]))

    assert finding.status == ("informative" if said else "pass")
    assert finding.advice.startswith(said or "")
    measured = mask_zero and said is not None
    assert ("how far was not measured" in finding.title) is (said is not None and not measured)


def test_without_padding_or_a_spec() -> None:
    assert only(padding, session_of(source(), batch())).status == "not-applicable"
    assert only(padding, session_with(None)).status == "inconclusive"
    assert only(padding, make_session(pipeline=None)).status == "inconclusive"


def of_one_length(zeros: float = 40.0, compute: float = 80.0, **table: Any) -> Finding:
    """Batches that no operation of the pipeline pads."""
    ids = make_ids(zero_percent=zeros, zero_is_a_token=table.pop("zero_is_a_token", None))
    breakdown = make_breakdown(input_wait=5.0, device_compute=compute)
    loop = make_loop(element_spec=table.pop("element_spec", "TensorSpec(shape=(64, 200))"))
    tables = [make_embedding(**{"mask_zero": True, "ids": ids, **table})]
    session = session_of(source(), batch(), embeddings=tables, breakdown=breakdown, loops=[loop])
    return only(padding, session)


def test_padding_to_one_fixed_length_is_told_with_its_share() -> None:
    finding = of_one_length()

    assert (finding.status, finding.title) == (
        "informative",
        "Examples are padded to one fixed length",
    )
    assert finding.advice.startswith("40 % of the ids are padding, which the model computes on")
    assert "cuts the longest examples, so that the model learns from less" in finding.advice
    assert finding.edit is None
    by_tokens = of_one_length(mask_zero=False, zero_is_a_token=False)
    assert by_tokens.advice == finding.advice


@pytest.mark.parametrize("spec", ["TensorSpec(shape=(64, None))", "TensorSpec(shape=(None, None))"])
def test_lengths_that_vary_without_a_padded_batch_are_no_fixed_one(spec: str) -> None:
    assert of_one_length(element_spec=spec).status == "not-applicable"
    assert of_one_length(element_spec=None).status == "not-applicable"


def test_a_fixed_padded_batch_is_one() -> None:
    ids = make_ids(zero_percent=62.0)
    tables = [make_embedding(mask_zero=True, ids=ids)]
    finding = only(padding, session_with(FIXED, embeddings=tables))

    assert (finding.status, finding.line) == ("informative", 7)
    assert "62 % of the ids are padding" in finding.advice


def test_zeros_that_are_few_or_that_nobody_says_are_padding() -> None:
    assert of_one_length(zeros=6.2).status == "pass"
    assert of_one_length(compute=12.4).status == "pass"
    assert of_one_length(mask_zero=False).status == "not-applicable"
    assert of_one_length(mask_zero=False, zero_is_a_token=True).status == "not-applicable"
    assert of_one_length(zero_is_a_token=True).status == "not-applicable"
