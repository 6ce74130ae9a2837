from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import pytest

from pipediag.facts.devices import NO_DEVICE
from pipediag.rules.rule import Section, lacking
from pipediag.rules.step_overhead import HOST_OVERHEAD
from tests.factories import make_device, make_keras, make_loop, make_session
from tests.ledgers import make_run
from tests.records import make_pipeline

SECTIONS: tuple[Section, ...] = get_args(Section)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_that_a_rule_can_need_is_known_here(section: Section) -> None:
    meta = replace(HOST_OVERHEAD, needs=(section,))
    measured = make_session(
        loops=[make_loop(keras=make_keras())],
        devices=[make_device(kind="GPU")],
        run=make_run(),
    )
    assert lacking(meta, measured) is None
    nothing = make_session(
        steps=None, breakdown=None, pipeline=None, host=None, devices=[], loops=[]
    )
    found = lacking(meta, nothing)
    assert found is not None
    assert found.status in ("not-applicable", "inconclusive")
    assert found.advice


@pytest.mark.parametrize("section", ["run", "steps", "breakdown", "host", "pipeline"])
def test_one_that_was_not_measured_gives_its_own_reason(section: Section) -> None:
    meta = replace(HOST_OVERHEAD, needs=(section,))
    session = make_session(**{section: None, f"{section}_missing": "It was too short."})
    found = lacking(meta, session)
    assert found is not None
    assert (found.status, found.advice) == ("inconclusive", "It was too short.")


@pytest.mark.parametrize(
    ("section", "overrides", "status", "advice"),
    [
        ("loop", {"loops": []}, "not-applicable", "No training loop was seen."),
        ("keras", {"loops": []}, "not-applicable", "No training loop was seen."),
        (
            "keras",
            {"loops": [make_loop(keras=None)]},
            "not-applicable",
            "The training loop is not a Keras fit.",
        ),
        ("run", {"run": None}, "not-applicable", "The session has no ledger of the run."),
        ("pipeline", {"pipeline": None}, "inconclusive", "The input pipeline was not recorded."),
        (
            "pipeline",
            {"pipeline": make_pipeline(ops=[], missing="It was made elsewhere.")},
            "inconclusive",
            "It was made elsewhere.",
        ),
        (
            "pipeline",
            {"pipeline": make_pipeline(ops=[])},
            "not-applicable",
            "The training loop reads no tf.data pipeline.",
        ),
        (
            "steps",
            {"steps": None},
            "inconclusive",
            "The session has no `steps`, and no reason for it.",
        ),
        (
            "devices",
            {"devices": [make_device(kind="CPU")]},
            "not-applicable",
            "Without an accelerator the step's breakdown says what the device's idle time would.",
        ),
        ("devices", {"devices": [], "loops": []}, "not-applicable", "No training loop was seen."),
        ("devices", {"devices": []}, "inconclusive", NO_DEVICE),
    ],
)
def test_what_is_missing_is_said(
    section: Section, overrides: dict[str, Any], status: str, advice: str
) -> None:
    found = lacking(replace(HOST_OVERHEAD, needs=(section,)), make_session(**overrides))
    assert found is not None
    assert (found.status, found.advice) == (status, advice)


def test_the_first_that_is_missing_is_the_one_to_name() -> None:
    meta = replace(HOST_OVERHEAD, needs=("steps", "loop"))
    nothing = make_session(steps=None, steps_missing="It was too short.", loops=[])
    found = lacking(meta, nothing)
    assert found is not None
    assert found.advice == "It was too short."


def test_a_loop_that_python_feeds_has_no_pipeline_to_look_at() -> None:
    meta = replace(HOST_OVERHEAD, needs=("pipeline",))
    loop = make_loop(keras=None, from_python=True)
    found = lacking(meta, make_session(loops=[loop], pipeline=None, pipeline_missing="None."))
    assert found is not None
    assert found.status == "not-applicable"
