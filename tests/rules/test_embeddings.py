"""Embedding tables and softmaxes: work on all of their rows, ids that were not meant, and edits."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.embeddings import (
    COLLIDING_IDS,
    DENSE_EMBEDDING_UPDATE,
    FULL_SOFTMAX,
    FUSED_EMBEDDING_UPDATE,
    IDS_OUTSIDE_TABLE,
    MASKED_TOKEN,
    REGULARIZED_TABLE,
    TABLE_COPIED_ON_LOOKUP,
    TRAINING_METRICS,
)
from pipediag.rules.rule import Rule
from pipediag.session.edits import SetModel
from pipediag.session.model import Session
from pipediag.session.recorded_loops import Softmax
from tests.factories import make_embedding, make_keras, make_loop, make_session
from tests.records import make_breakdown
from tests.rules.sessions import cases, decides, keeps_up, make_ids, only, waits

OWN_LOOP = {"loops": [make_loop(kind="eager", keras=None)]}
LITTLE_COMPUTE = {"breakdown": make_breakdown(off=0.0, input_wait=1.0, device_compute=20.0)}


def fit(optimizer: str = "Adam", **keras: Any) -> dict[str, Any]:
    return {"loops": [make_loop(keras=make_keras(optimizer=optimizer, **keras))]}


def setting(**settings: Any) -> tuple[SetModel]:
    return (SetModel(settings),)


WIDE = {
    "rows": 500_000,
    "table_bytes": 128_000_000,
    "slot_bytes": 256_000_000,
    "gradient": "sparse",
    "update": "dense",
    "temporary_bytes": 1_280_000_000,
    "whole_table_operations": {"Mul": 3, "UnsortedSegmentSum": 2},
    "rows_touched_per_step": 2_502,
}


def updated(*tables: dict[str, Any], **overrides: Any) -> Session:
    made = [make_embedding(**{**WIDE, **table}) for table in tables or ({},)]
    return make_session(embeddings=made, **{**keeps_up(), **fit(), **overrides})


ROW_WISE = setting(optimizer="row_wise")
COSTLY = {"table_bytes": 7_680_000, "passes_ms": 5.0}


test_an_update_of_a_whole_table = decides(
    DENSE_EMBEDDING_UPDATE,
    {
        "Adam": (updated(), ("fail", ROW_WISE)),
        "sparse": (updated({"update": "sparse"}), "pass"),
        "small": (updated({"table_bytes": 9_000_000}), ("informative", ROW_WISE)),
        "small, but costly": (updated(COSTLY), ("fail", ROW_WISE)),
        "dense gradient": (updated({"gradient": "dense"}), "pass"),
        "input first": (updated(**waits()), ("informative", ROW_WISE)),
        "not seen": (updated({"update": None, "gradient": None}), "inconclusive"),
        "own loop": (updated(**OWN_LOOP), "fail"),
        "constraint": (updated({"constraint": "MaxNorm"}), "pass"),
    },
)


FUSED = setting(optimizer="fused")


test_an_update_in_one_pass = decides(
    FUSED_EMBEDDING_UPDATE,
    {
        "Adam": (updated(), ("fail", FUSED)),
        "AdamW": (updated(**fit("AdamW")), ("fail", FUSED)),
        "another": (updated(**fit("RMSprop")), "pass"),
        "small": (updated({"table_bytes": 1_000_000}), "pass"),
        "small, but costly": (updated(COSTLY), ("fail", FUSED)),
        "dense gradient": (updated({"gradient": "dense"}), "pass"),
        "input first": (updated(**waits()), ("informative", FUSED)),
        "own loop": (updated(**OWN_LOOP), "pass"),
    },
)


# Regularisers and constraints

CONSTRAINED = {"regularizer": None, "constraint": "MaxNorm", "gradient": "sparse"}


def termed(*tables: dict[str, Any], **overrides: Any) -> Session:
    values = {**WIDE, "gradient": "dense", "regularizer": "L2"}
    made = [make_embedding(**{**values, **table}) for table in tables or ({},)]
    return make_session(embeddings=made, **{**keeps_up(), **fit("SGD"), **overrides})


test_a_term_over_a_whole_table = decides(
    REGULARIZED_TABLE,
    {
        "regulariser": (termed(), "fail"),
        "constraint": (termed(CONSTRAINED), "pass"),
        "input first": (termed(**waits()), "informative"),
        "little compute": (termed(**LITTLE_COMPUTE), "informative"),
        "takes little": (termed({"passes_ms": 0.3}), "informative"),
    },
)


# Copies

COPIED = {
    **WIDE,
    "update": "sparse",
    "copied_bytes_per_step": 128_000_000,
    "whole_table_operations": {},
    "copy_ms": 5.0,
}
NOT_COPIED = {"copied_bytes_per_step": 0}


def copied(table: dict[str, Any] | None = None, **overrides: Any) -> Session:
    made = [make_embedding(**{**COPIED, **(table or {})})]
    return make_session(embeddings=made, **{**keeps_up(), **fit("SGD"), **overrides})


XLA = setting(jit_compile=True)


test_a_table_that_is_copied_for_a_lookup = decides(
    TABLE_COPIED_ON_LOOKUP,
    {
        "copied": (copied(), ("fail", XLA)),
        # As under XLA, under Adam, which writes the table in full, or where it is frozen.
        "read but not copied": (copied(NOT_COPIED), "pass"),
        "not timed": (copied({"copy_ms": None}), ("informative", XLA)),
        "dense update": (copied({"update": "dense"}), ("informative", XLA)),
        "input first": (copied(**waits()), ("informative", XLA)),
        "timed as little": (copied({"copy_ms": 0.2}), ("informative", XLA)),
    },
)


# A softmax over a whole vocabulary

WORDS: dict[str, Any] = {
    "weights": "dense/kernel",
    "classes": 50_000,
    "features": 128,
    "labels": "sparse",
}


def softmax(*ones: dict[str, Any], **overrides: Any) -> Session:
    loop: dict[str, Any] = overrides.pop("loop", {})
    made = [Softmax(**{**WORDS, **one}) for one in ones]
    values = {"loops": [make_loop(softmaxes=made, **loop)], "vocabulary_ms": 6.0}
    return make_session(**{**keeps_up(), **values, **overrides})


test_a_softmax_over_a_vocabulary = decides(
    FULL_SOFTMAX,
    {
        "50,000 classes": (softmax({}), "fail"),
        "not measured": (softmax({}, vocabulary_ms=None), "informative"),
        "fewer classes": (softmax({"classes": 4_999}), "informative"),
        "as few as are drawn": (softmax({"classes": 512}), "pass"),
        "input first": (softmax({}, **waits()), "informative"),
    },
)


TIED = {"variable": "dense/kernel:0", "rows": 50_000, "dim": 128, "passes_ms": 3.1}
SEPARATE = {**TIED, "variable": "embedding/embeddings:0"}


@cases(
    {
        "separate table of the same shape": (SEPARATE, 2.56),
        "tied": (TIED, 12.5),
        "tied, transposed": ({**TIED, "rows": 128, "dim": 50_000}, 12.5),
        "tied, not timed": ({**TIED, "passes_ms": None}, 11.1),
    },
    "table, at_most",
)
def test_a_sampled_softmax_spares_passes_over_tied_weights(
    table: dict[str, Any] | None, at_most: float
) -> None:
    tables = [] if table is None else [make_embedding(**table)]
    finding = only(FULL_SOFTMAX, softmax({}, embeddings=tables))
    assert finding.speedup_at_most == pytest.approx(at_most, rel=0.01)


# Metrics in the training step


def with_metrics(ms: float, **overrides: Any) -> Session:
    return make_session(**{**keeps_up(), "metrics_ms": ms, **overrides})


test_metrics_that_only_validation_needs = decides(
    TRAINING_METRICS,
    {
        "half of the step": (with_metrics(5.0), "fail"),
        "little": (with_metrics(1.0), "pass"),
        "input first": (with_metrics(5.0, **waits()), "informative"),
    },
)


# Ids that a batch holds


def looked_at(table: dict[str, Any] | None = None, **ids: Any) -> Session:
    """A session with a table of 1,000 rows."""
    return make_session(embeddings=[make_embedding(**(table or {}), ids=make_ids(**ids))])


def cast(through: str | None, rows: int) -> Session:
    return looked_at({"rows": rows}, cast_through=through)


MASKED = {"mask_zero": True}
OUTSIDE = {"outside": 3, "outside_examples": [(42, 1_000), (47, 1_200)]}
NEGATIVE = {"outside": 1, "outside_examples": [(42, -1)]}


@cases(
    {
        "outside": (IDS_OUTSIDE_TABLE, looked_at(**OUTSIDE), "fail"),
        "negative": (IDS_OUTSIDE_TABLE, looked_at(**NEGATIVE), "fail"),
        "within": (IDS_OUTSIDE_TABLE, looked_at(), "pass"),
        "bfloat16": (COLLIDING_IDS, cast("bfloat16", 257), "pass"),
        "bfloat16, one more": (COLLIDING_IDS, cast("bfloat16", 258), "fail"),
        "few zeros within": (MASKED_TOKEN, looked_at(MASKED, zeros_within=7), "pass"),
        "zeros within": (MASKED_TOKEN, looked_at(MASKED, zeros_within=8), "fail"),
        "no mask": (MASKED_TOKEN, looked_at(zeros_within=500), "pass"),
    },
    "rule, session, status",
)
def test_ids_that_a_batch_holds(rule: Rule, session: Session, status: str) -> None:
    finding = only(rule, session)
    assert finding.status == status
    assert finding.about_results
    if status == "fail":
        assert finding.severity == "error"
