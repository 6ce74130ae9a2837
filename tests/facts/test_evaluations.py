from __future__ import annotations

import pytest

from pipediag.facts.evaluations import (
    cache_place,
    repeated_work,
)
from pipediag.session.pipeline import Pipeline
from tests.evaluations import decoding, ending, written
from tests.records import make_function

RANDOM = make_function(graph_ops={"RandomUniform": 1})


def placed(pipeline: Pipeline) -> str | None:
    """The id of the operation behind which a cache belongs."""
    work = repeated_work(pipeline)
    place = cache_place(pipeline, work) if work is not None else None
    return place.id if place is not None else None


def worked(pipeline: Pipeline) -> str | None:
    work = repeated_work(pipeline)
    return work.id if work is not None else None


def test_the_last_function_on_the_way_is_what_is_done_anew() -> None:
    assert worked(ending()) == "v2"
    again = written("v4", "map", 33, "v3", function=make_function())
    assert worked(ending(again)) == "v4"


@pytest.mark.parametrize("kind", ["cache", "snapshot"])
def test_what_a_cache_keeps_is_not_done_anew(kind: str) -> None:
    assert worked(ending(written("v4", kind, 33, "v3"))) is None


def test_a_cache_stands_as_late_as_it_may() -> None:
    assert placed(ending()) == "v3"
    assert placed(ending(written("v4", "prefetch", 33, "v3"))) == "v3"
    options = written("v5", "with_options", 34, "v4")
    assert placed(ending(written("v4", "prefetch", 33, "v3"), options)) == "v3"
    assert placed(ending(written("v4", "take", 33, "v3"))) == "v4"


@pytest.mark.parametrize("kind", ["repeat", "shuffle"])
def test_a_cache_stands_before_what_it_would_freeze_or_never_end_on(kind: str) -> None:
    assert placed(ending(written("v4", kind, 33, "v3"))) == "v3"
    assert placed(ending(written("v4", kind, 33, "v3"), written("v5", "batch", 34, "v4"))) == "v3"


def test_what_is_drawn_at_random_is_not_frozen() -> None:
    assert placed(ending(before=decoding(graph_ops={"RandomUniform": 1}))) is None
    augmented = written("v4", "map", 33, "v3", function=RANDOM)
    work = ending().ops[1]
    assert cache_place(ending(augmented), work) == ending().ops[2]
