from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.embedding import duplicate_ids as rule
from pipediag.session.edits import SetModel
from pipediag.session.findings import Finding
from tests.factories import (
    make_device,
    make_embedding,
    make_embedding_cost,
    make_keras,
    make_loop,
    make_session,
)
from tests.records import make_breakdown
from tests.rules.embedding.sessions import make_ids, unseen
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import only

COMPUTED = {"breakdown": make_breakdown(input_wait=2.0, device_compute=90.0)}


def finding_with(repeated: float = 60.0, lookups: float = 10_000.0, **overrides: Any) -> Finding:
    """A table of 256 bytes a row, by so many ids of which that part repeats, in percent."""
    different = lookups * (1.0 - repeated / 100.0)
    table = make_embedding(ids=make_ids(lookups_per_step=lookups, unique_per_step=different))
    values = {"loops": [make_loop(keras=make_keras())], "embeddings": [table], **COMPUTED}
    return only(rule, make_session(**{**values, **overrides}))


def taking(percent: float) -> Finding:
    """Lookups and gradients that take so much of a step of 10 ms."""
    half = percent / 20.0
    parts = [("lookup", half), ("gradient", half), ("update", 5.0)]
    return finding_with(embedding_cost=make_embedding_cost(*parts))


def test_ids_that_repeat_are_told_and_tried() -> None:
    finding = finding_with()

    assert finding.status == "informative"
    assert "10,000 ids in `embedding`, 4,000 of them different" in finding.advice
    assert finding.evidence["repeated_percent"] == 60.0
    assert finding.edit is not None
    assert finding.edit.changes == (SetModel({"unique_ids": True}),)
    assert finding.effect_on_results == "same up to order or rounding"


def test_of_some_lookups_alone_it_is_not_known_how_many_ids_repeat() -> None:
    table = make_embedding(ids=make_ids(incomplete="1 of 2 lookups could not be followed."))
    finding = finding_with(embeddings=[table])

    assert finding.status == "inconclusive"
    assert "1 of 2 lookups" in finding.advice


def test_what_it_takes_is_said_where_the_profile_tells_it() -> None:
    assert "take 20 % of the step" in taking(20.0).advice


@pytest.mark.parametrize("keras", [None, make_keras(jit_compile=True)])
def test_an_own_loop_and_one_compiled_by_xla_have_no_trial(keras: Any) -> None:
    finding = finding_with(loops=[make_loop(keras=keras)])
    assert (finding.status, finding.edit) == ("informative", None)


def test_on_a_cpu_it_says_that_the_edit_gained_nowhere_that_it_was_measured() -> None:
    gpu = make_device(kind="GPU")

    assert "on a CPU made the step faster for no table" in finding_with(devices=[]).advice
    assert "may as well take longer" in finding_with(devices=[gpu]).advice


def test_ids_that_replicas_share_are_told_as_such() -> None:
    loops = [make_loop(keras=make_keras(), replicas=2)]

    assert "2 replicas share them" in finding_with(loops=loops).advice
    assert "replicas" not in finding_with().advice


def test_while_input_waits_that_comes_first() -> None:
    finding = finding_with(breakdown=make_breakdown(input_wait=60.0, device_compute=30.0))
    assert finding.edit is None
    assert "deal with the input first" in finding.advice


def test_without_ids() -> None:
    assert only(rule, unseen()).status == "inconclusive"
    assert finding_with(embeddings=[]).status == "not-applicable"


LIMITS = [
    Limit(rule, rule.REPEATED, finding_with, "informative", "pass"),
    Limit(
        rule,
        rule.VECTORS,
        lambda megabytes: finding_with(lookups=megabytes * 1e6 / 256),
        "informative",
        "pass",
    ),
    Limit(rule, rule.OPERATION_SHARE, taking, "informative", "pass"),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_a_limit(limit: Limit) -> None:
    stands(limit)
