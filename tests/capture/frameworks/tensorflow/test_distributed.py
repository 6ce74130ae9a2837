"""A strategy's iterators, as far as no strategy is needed to see it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.distributed import DistributedIterators, Distributing
from pipediag.capture.frameworks.tensorflow.runtime import TensorFlowRuntime


class Spread:
    """An iterator of a strategy's."""

    _iterators: tuple[Any, ...] = (SimpleNamespace(_iterator=object()),)
    _replica_order: list[int] | None = None


def iterators_that(advance: Callable[[Any], Any]) -> tuple[DistributedIterators, Distributing]:
    distributing = Distributing()
    return DistributedIterators(Spread, advance, distributing), distributing


def test_while_a_batch_is_drawn_no_other_iterator_is_watched() -> None:
    spread, distributing = iterators_that(lambda _: distributing.inside)

    assert spread.pull(Spread()) is True
    assert distributing.inside is False


def test_it_is_watched_again_after_the_end_of_the_data() -> None:
    spread, distributing = iterators_that(next)

    with pytest.raises(StopIteration):
        spread.pull(iter([]))
    assert distributing.inside is False


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_iterators", ()),
        ("_iterators", Spread._iterators * 2),
        ("_iterators", Spread._iterators),  # what is behind it is none for several devices
        ("_replica_order", [1, 0]),
    ],
)
def test_none_is_drawn_where_nothing_can_stand_in(name: str, value: Any) -> None:
    spread, _ = iterators_that(next)
    iterator = Spread()
    setattr(iterator, name, value)

    assert "spread over several workers" in str(spread.not_handed_once(iterator))


def test_where_making_one_fails_that_is_the_reason() -> None:
    class Gone(Spread):
        @property
        def _replica_order(self) -> list[int]:  # type: ignore[override]
            raise ValueError

    spread, _ = iterators_that(next)
    assert str(spread.not_handed_once(Gone())).endswith("that of the strategy: ValueError.")


def test_the_runtime_draws_each_by_its_own_way() -> None:
    runtime = TensorFlowRuntime()
    runtime.advance = lambda _: "plain"
    assert runtime.pull(Spread()) == "plain"  # no strategy was seen yet

    runtime.distributed, _ = iterators_that(lambda _: "spread")
    assert (runtime.pull(Spread()), runtime.pull(iter([]))) == ("spread", "plain")
