"""What is to be put in by hand is code that exists: no setting of a trial is an argument there."""

from __future__ import annotations

import pytest

from pipediag.patching.snippets import snippet
from pipediag.session.edits import SetModel
from pipediag.vocabulary import Scalar
from tests.factories import make_keras, make_loop, make_session


def by_hand(**settings: Scalar) -> str:
    session = make_session(loops=[make_loop(keras=make_keras(optimizer="Adam"))])
    code = snippet(session, [SetModel(settings)])
    assert code is not None
    return code


def test_a_table_without_its_terms() -> None:
    code = by_hand(table_terms_left_out=True, optimizer="row_wise")

    assert "without its embeddings_regularizer" in code
    assert "from pipediag.optimizers import LazyAdam\nmodel.compile(LazyAdam(...), ...)" in code
    assert "table_terms_left_out" not in code
    assert "row_wise" not in code


def test_rows_looked_up_by_different_ids() -> None:
    code = by_hand(unique_ids=True)

    assert code.startswith("different, places = tf.unique(tf.reshape(ids, [-1]))\n")
    assert "compile" not in code


@pytest.mark.parametrize("name", ["table_terms_left_out", "unique_ids"])
def test_what_is_not_set_is_not_written(name: str) -> None:
    assert by_hand(jit_compile=True, **{name: False}) == "model.compile(..., jit_compile=True)"


def test_plain_sgd_is_an_argument() -> None:
    assert by_hand(optimizer="sgd") == "model.compile(..., optimizer='sgd')"
