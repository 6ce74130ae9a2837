from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest

from pipediag.rules.pipeline import one_hot_labels, vectors_in_pipeline, widened_ids
from pipediag.session.findings import Finding
from pipediag.session.loops import Softmax
from pipediag.session.pipeline import Widening
from tests.factories import make_embedding_cost, make_keras, make_loop
from tests.records import make_breakdown, make_function, make_operation, make_steps
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import batch, keeps_up, only, session_of, source

STEPS = make_steps(batch_size=None)

RULES = [(vectors_in_pipeline, "lookup"), (one_hot_labels, "one-hot")]
LOSS = "categorical_crossentropy"


def finding_with(
    rule: ModuleType,
    kind: str | None,
    shipped: int = 400_000,
    elements: float | None = 32.0,
    loss: str = LOSS,
    label: bool = True,
    **overrides: Any,
) -> Finding:
    part = {"kind": kind, "rows": 100_000, "ids_bytes": 8, "bytes": shipped, "label": label}
    widenings = [Widening(**part)] if kind else []  # type: ignore[arg-type]
    mapped = make_operation(
        "map_0",
        elements=elements,
        self_ms_per_step=6.0,
        latency_ms_per_step=6.0,
        function=make_function(stateful=False, graph_ops={}, widenings=widenings),
    )
    loops = [make_loop(keras=make_keras(loss=loss))]
    usual = {"loops": loops, **overrides}
    return only(rule, session_of(source(), mapped, batch(), **usual))


@pytest.mark.parametrize(("rule", "kind"), RULES)
def test_bytes_that_the_step_waits_for(rule: ModuleType, kind: str) -> None:
    finding = finding_with(rule, kind)

    assert (finding.status, finding.effect_on_results) == ("fail", "same results")
    assert "400000 bytes" in finding.advice
    assert "12.8 MB more in a step" in finding.advice
    assert finding.op_id == "map_0"
    assert finding.trial.reason is not None


def test_what_the_softmax_takes_stays() -> None:
    cost = make_embedding_cost(("vocabulary", 3.0), ("rest", 1.0))
    told = finding_with(one_hot_labels, "one-hot", embedding_cost=cost)

    assert "take 3 ms of a step either way." in told.advice
    assert "either way" not in finding_with(one_hot_labels, "one-hot").advice


@pytest.mark.parametrize(("rule", "kind"), RULES)
def test_bytes_that_none_waits_for(rule: ModuleType, kind: str) -> None:
    assert finding_with(rule, kind, **keeps_up()).status == "informative"


@pytest.mark.parametrize(("rule", "kind"), RULES)
def test_bytes_that_are_copied_to_the_device(rule: ModuleType, kind: str) -> None:
    copied = make_breakdown(input_wait=1.0, device_compute=50.0, device_copy=10.0)

    assert finding_with(rule, kind, breakdown=copied).status == "fail"


@pytest.mark.parametrize(("rule", "kind"), RULES)
def test_no_ids_or_others(rule: ModuleType, kind: str) -> None:
    other = next(one for _, one in RULES if one != kind)

    assert finding_with(rule, None).status == "not-applicable"
    assert finding_with(rule, other).status == "not-applicable"


@pytest.mark.parametrize(("rule", "kind"), RULES)
def test_elements_that_were_not_counted(rule: ModuleType, kind: str) -> None:
    assert finding_with(rule, kind, elements=None).status == "inconclusive"


def test_one_hot_inputs_are_no_labels() -> None:
    assert finding_with(one_hot_labels, "one-hot", label=False).status == "not-applicable"


def test_another_loss_may_need_one_hot_labels() -> None:
    assert finding_with(one_hot_labels, "one-hot", loss="kl_divergence").status == "not-applicable"


def given(batch_size: int | None = 128, **overrides: Any) -> Finding:
    """Labels that no map makes, of 20,000 classes."""
    known = {"weights": "w", "classes": 20_000, "features": 8, "labels": "dense"}
    softmax = Softmax(**{**known, "labels_given": True, **overrides})  # type: ignore[arg-type]
    loop = make_loop(keras=make_keras(loss=LOSS), softmaxes=[softmax], batch_size=batch_size)
    return only(one_hot_labels, session_of(source(), batch(), loops=[loop], steps=STEPS))


def test_labels_that_the_batch_has_a_number_for_each_class_of() -> None:
    finding = given()

    assert finding.status == "informative"
    assert "If each label is one class, as `to_categorical` makes them" in finding.advice
    assert "20000 classes, 10.2 MB in a step" in finding.advice
    shipped = given(positions=2).evidence["shipped_megabytes_per_step"]
    assert shipped == pytest.approx(20.48, abs=0.01)


def test_given_labels_that_are_few_or_made_in_the_step() -> None:
    assert given(classes=10).status == "pass"
    assert given(batch_size=None).status == "inconclusive"
    assert given(labels_given=False).status == "not-applicable"


def test_labels_that_a_map_makes_are_told_there() -> None:
    softmax = Softmax(weights="w", classes=9, features=8, labels="dense", labels_given=True)
    loop = make_loop(keras=make_keras(loss=LOSS), softmaxes=[softmax])

    assert finding_with(one_hot_labels, "one-hot", loops=[loop]).op_id == "map_0"


LIMITS = [
    Limit(
        rule,
        widened_ids.SHIPPED,
        lambda megabytes, rule=rule, kind=kind: finding_with(  # type: ignore[misc]
            rule, kind, shipped=8 + round(megabytes * 1e6), elements=1.0
        ),
        "fail",
        "pass",
    )
    for rule, kind in RULES
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_a_limit(limit: Limit) -> None:
    stands(limit)
