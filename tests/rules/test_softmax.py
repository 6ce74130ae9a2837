from __future__ import annotations

from typing import Any, get_args

import pytest

from pipediag.facts.limits import OPERATION_SHARE
from pipediag.rules.softmax import CLASSES, FULL_SOFTMAX
from pipediag.session.edits import SetModel
from pipediag.session.embeddings import EmbeddingCost, FusedParts, PartName
from pipediag.session.findings import Finding
from pipediag.session.loops import Softmax
from pipediag.session.model import Session
from pipediag.vocabulary import TablePart
from tests.factories import make_embedding, make_embedding_cost, make_keras, make_loop, make_session
from tests.records import make_breakdown, make_environment
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import keeps_up, only, run

WORDS: dict[str, Any] = {
    "weights": "dense/kernel",
    "classes": 50_000,
    "features": 128,
    "positions": 1,
    "labels": "sparse",
    "device": "/job:localhost/replica:0/task:0/device:CPU:0",
}


TOLD = make_embedding_cost(("vocabulary", 6.0), ("rest", 3.0))


def session_with(*softmaxes: dict[str, Any], batch_size: int = 8, **overrides: Any) -> Session:
    made = [Softmax(**{**WORDS, **one}) for one in softmaxes]
    loops = [make_loop(softmaxes=made, batch_size=batch_size)]
    return make_session(**{**keeps_up(), "loops": loops, "embedding_cost": TOLD, **overrides})


def finding_with(batch_size: int = 8, **softmax: Any) -> Finding:
    return only(FULL_SOFTMAX, session_with(softmax, batch_size=batch_size))


def test_a_softmax_over_a_vocabulary_fails() -> None:
    finding = finding_with()

    assert (finding.status, finding.severity) == ("fail", "warn")
    assert finding.effect_on_results == "changes a hyper-parameter"
    assert finding.speedup_at_most is not None


def test_a_loop_of_one_s_own_is_not_tried() -> None:
    own = make_loop(kind="eager", keras=None, softmaxes=[Softmax(**WORDS)])
    finding = only(FULL_SOFTMAX, session_with(loops=[own]))

    assert (finding.status, finding.edit) == ("fail", None)
    assert "the script's own code" in (finding.trial.reason or "")


def in_keras(**keras: Any) -> Session:
    made = [Softmax(**WORDS)]
    return session_with(loops=[make_loop(softmaxes=made, keras=make_keras(**keras))])


def test_in_a_fit_drawn_classes_are_tried() -> None:
    edit = only(FULL_SOFTMAX, in_keras()).edit

    assert edit is not None
    assert edit.changes == (SetModel({"sampled_softmax": 512}),)
    assert edit.label == "softmax of 512 drawn classes in training"
    assert edit.caveat is not None
    assert "another loss" in edit.caveat
    assert "accuracy, which take all classes, are left out" in edit.caveat


def test_xla_knows_no_draw() -> None:
    edit = only(FULL_SOFTMAX, in_keras(jit_compile=True)).edit

    assert edit is not None
    assert edit.changes == (SetModel({"sampled_softmax": 512, "jit_compile": False}),)
    assert edit.label.endswith(", without XLA")


def test_what_can_not_be_tried_says_why() -> None:
    several = session_with({}, {})
    large = only(FULL_SOFTMAX, in_keras(optimizer_bytes=1 << 40))
    old = only(
        FULL_SOFTMAX,
        in_keras().model_copy(update={"environment": make_environment(legacy_keras=True)}),
    )
    first = run(FULL_SOFTMAX, several)[0]

    assert (first.edit, large.edit, old.edit) == (None, None, None)
    assert "no memory" in (large.trial.reason or "")
    assert "another Keras than 3" in (old.trial.reason or "")


def test_what_was_not_measured_is_tried() -> None:
    finding = only(FULL_SOFTMAX, session_with({}, embedding_cost=None))
    assert (finding.status, finding.edit is not None) == ("informative", True)


@pytest.mark.parametrize(
    ("layer", "table"),
    [
        ("dense/kernel", {}),
        ("embedding", {"rows": 50_000, "dim": 128, "variable": "dense/kernel:0"}),
    ],
)
def test_the_most_that_it_can_buy_has_the_update_of_the_weights_in_it(
    layer: str, table: dict[str, Any]
) -> None:
    """Which may then be that of rows; weights of their own, and weights tied to a table. Of a step
    of 10 ms; other parts and other tables stay."""
    variable = table.get("variable", layer)
    told = [("vocabulary", 6.0), ("rest", 1.0)]
    cost = make_embedding_cost(*told, ("update", 1.0), ("gradient", 0.5), layer=layer)
    own = [part.model_copy(update={"variable": part.layer and variable}) for part in cost.parts]
    other = make_embedding_cost(("update", 0.5), layer="other").parts
    session = session_with(
        {},
        embedding_cost=cost.model_copy(update={"parts": [*own, *other]}),
        embeddings=[make_embedding(**table), make_embedding(layer="other")],
        breakdown=make_breakdown(off=0.0, device_compute=90.0),
    )
    finding = only(FULL_SOFTMAX, session)

    assert finding.speedup_at_most == pytest.approx(100 / 25, abs=0.001)
    assert finding.evidence["took_ms_per_step"] == 6.0


def fused_update() -> EmbeddingCost:
    """What is told of the update is not all of it: XLA fused more with other parts."""
    own = [
        PartName(part=part, layer="dense/kernel", variable="dense/kernel")
        for part in get_args(TablePart)
    ]
    cost = make_embedding_cost(("vocabulary", 6.0), ("update", 1.0), layer="dense/kernel")
    told = [
        part.model_copy(update={"variable": part.layer and "dense/kernel"}) for part in cost.parts
    ]
    fused = FusedParts(parts=[*own, PartName(part="rest")], ms=2.0, percent=20.0)
    return cost.model_copy(update={"parts": told, "fused": [fused]})


@pytest.mark.parametrize(
    "cost", [make_embedding_cost(("vocabulary", 6.0), ("rest", 2.0)), fused_update()]
)
def test_where_the_update_of_the_weights_was_not_told_all_compute_bounds_it(
    cost: EmbeddingCost,
) -> None:
    session = session_with(
        {},
        embedding_cost=cost,
        breakdown=make_breakdown(off=0.0, device_compute=80.0),
    )

    assert only(FULL_SOFTMAX, session).speedup_at_most == pytest.approx(100 / 20, abs=0.001)


def test_each_loss_has_its_own() -> None:
    assert len(run(FULL_SOFTMAX, session_with({}, {"weights": "other"}))) == 2


def test_a_step_without_one() -> None:
    assert only(FULL_SOFTMAX, session_with()).status == "not-applicable"
    assert only(FULL_SOFTMAX, make_session(**keeps_up())).status == "not-applicable"


def test_where_input_decides_it_only_informs() -> None:
    waits = session_with(
        {}, breakdown=make_breakdown(off=0.0, input_wait=50.0, device_compute=40.0)
    )

    finding = only(FULL_SOFTMAX, waits)
    assert (finding.status, finding.edit is not None) == ("informative", True)


@pytest.mark.parametrize(("classes", "status"), [(4_999, "informative"), (512, "pass")])
def test_a_softmax_over_fewer_classes_is_tried_as_far_as_fewer_can_be_drawn(
    classes: int, status: str
) -> None:
    finding = finding_with(batch_size=100_000, classes=classes)
    assert (finding.status, finding.edit is not None) == (status, status == "informative")


def of_share(percent: float) -> Finding:
    """A softmax that takes that much of a step of 10 ms."""
    cost = make_embedding_cost(("vocabulary", percent / 10.0), ("rest", 9.0 - percent / 10.0))
    return only(FULL_SOFTMAX, session_with({}, embedding_cost=cost))


LIMITS = [
    Limit(FULL_SOFTMAX, OPERATION_SHARE, of_share, "fail", "informative"),
    Limit(
        FULL_SOFTMAX,
        CLASSES,
        lambda classes: finding_with(classes=int(classes)),
        "fail",
        "informative",
    ),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_a_limit(limit: Limit) -> None:
    stands(limit)
