"""Which tables and ways are timed, of 1,000 rows of 64 float32 that Adam trains."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.table_ways import Shares
from pipediag.measures.missing import Missing
from pipediag.session.model import Session
from pipediag.trials.way_plan import Wanted, wanted
from tests import factories
from tests.factories import make_embedding, make_keras, make_loop, make_session
from tests.rules.embedding.sessions import make_ids

TABLE = 1000 * 64 * 4
ADAM: dict[str, Any] = {
    "gradient": "sparse",
    "gradient_spread": True,
    "copied_on_lookup": True,
    "temporary_peak_bytes": 2 * TABLE,
    "slots": 2,
    "device": "/job:localhost/replica:0/task:0/device:CPU:0",
    "ids": make_ids(),
}
NEEDED = 2 * 5 * TABLE + 3 * TABLE


def session_of(**overrides: Any) -> Session:
    environment = factories.make_environment(keras="3.15.1", keras_backend="tensorflow")
    return make_session(**{"environment": environment, **overrides})


def asked(
    session: Session | None = None, free_bytes: int | None = None, **table: Any
) -> Wanted | Missing:
    row = make_embedding(**{**ADAM, **table})
    return wanted(session or session_of(), row, "ids.npz", Shares(), free_bytes)


def timed(*args: Any, **table: Any) -> Wanted:
    found = asked(*args, **table)
    assert isinstance(found, Wanted)
    return found


def test_what_can_be_trained_is_timed_as_a_step_and_the_rest_as_a_look_up() -> None:
    found = timed()

    assert found.bench.step_ways == [
        "bfloat16",
        "row-wise update",
        "sgd",
        "hashing",
        "quotient-remainder",
    ]
    assert found.bench.lookup_ways == ["8-bit rows", "memory-mapped and frozen"]
    assert set(found.not_timed) == {"sharding", "host with hot rows on the device"}
    assert (found.bench.rows, found.bench.slots, found.bench.reads_whole) == (1000, 2, True)
    assert found.bench.device == "/device:CPU:0"
    assert found.notes == []


def test_of_a_frozen_table_look_ups_alone_are_timed() -> None:
    found = timed(trainable=False, gradient=None, slot_bytes=0)

    assert found.bench.step_ways == []
    assert "hashing" in found.bench.lookup_ways


def test_the_run_s_optimizer_is_asked_for_with_what_is_set_of_it() -> None:
    keras = make_keras(optimizer="SGD", optimizer_settings={"momentum": 0.9}, jit_compile=True)
    found = timed(session_of(loops=[make_loop(keras=keras)]))

    assert (found.bench.optimizer, found.bench.arguments) == ("SGD", {"momentum": 0.9})
    assert found.bench.jit


@pytest.mark.parametrize(
    ("keras", "table", "ways", "reason"),
    [
        (None, {}, {"bfloat16", "sgd"}, "known of Keras' `fit` alone"),
        (make_keras(), {"gradient": "dense"}, {"bfloat16", "hashing"}, "gradient is dense"),
        (make_keras(optimizer="Lion"), {}, {"row-wise update"}, "in place of Lion"),
    ],
)
def test_a_way_that_is_not_timed_says_why(
    keras: Any, table: dict[str, Any], ways: set[str], reason: str
) -> None:
    found = timed(session_of(loops=[make_loop(keras=keras)]), **table)

    assert {way for way, said in found.not_timed.items() if reason in said} >= ways
    assert not ways & set(found.bench.step_ways)
    assert found.bench.lookup_ways


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"ids": None, "ids_missing": "A loop."}, "A loop."),
        ({"ids": make_ids(incomplete="1 of 2.")}, "Some of its lookups are not known: 1 of 2."),
    ],
)
def test_without_the_run_s_ids_nothing_is_timed(table: dict[str, Any], reason: str) -> None:
    assert asked(**table) == Missing(reason)


@pytest.mark.parametrize(
    "environment",
    [{"keras": None}, {"keras": "2.15.0"}, {"keras": "3.15.1", "legacy_keras": True}],
)
def test_it_takes_keras_3(environment: dict[str, Any]) -> None:
    found = asked(session_of(environment=factories.make_environment(**environment)))

    assert isinstance(found, Missing)
    assert "Keras 3" in found.reason


def test_several_replicas_are_not_timed_as_one() -> None:
    found = asked(session_of(loops=[make_loop(replicas=2)]))

    assert isinstance(found, Missing)
    assert "replicas" in found.reason


def test_no_more_rows_are_timed_than_fit_and_that_is_said() -> None:
    half = timed(free_bytes=round(NEEDED / 0.6 / 2))

    assert abs(half.bench.rows - 500) <= 1
    assert "of 1,000 rows were timed" in half.notes[0]
    assert isinstance(asked(free_bytes=NEEDED // 10), Missing)
