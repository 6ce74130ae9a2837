from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from pipediag.rules.rule import Section
from pipediag.rules.sections import lacking
from pipediag.rules.step import host_overhead
from tests.factories import make_device, make_keras, make_loop, make_session
from tests.ledgers import make_run

SECTIONS: tuple[Section, ...] = get_args(Section)


@pytest.mark.parametrize("section", SECTIONS)
def test_each_that_a_rule_can_need_is_known_here(section: Section) -> None:
    meta = replace(host_overhead.META, needs=(section,))
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
    meta = replace(host_overhead.META, needs=(section,))
    session = make_session(**{section: None, f"{section}_missing": "It was too short."})
    found = lacking(meta, session)
    assert found is not None
    assert (found.status, found.advice) == ("inconclusive", "It was too short.")
