"""How long training stands still while a pipeline's tables of tokens are read."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.capture.measuring.ids import TokensInFront
from pipediag.capture.runtime import Passage, Tokens, UntoldTokensError
from tests.capture.runtimes import ToyRuntime

SECOND_NS = 1_000_000_000


class SlowPipeline(ToyRuntime):
    """Each part of which takes so long to tell, by a clock of its own."""

    def __init__(self, takes_ns: int) -> None:
        super().__init__()
        self.now_ns = 5 * SECOND_NS
        self.read: list[int] = []
        self._takes_ns = takes_ns

    def pipeline_tokens(self, dataset: Any) -> Any:
        return self

    def behind(self, part: int) -> Tokens | None:
        self.now_ns += self._takes_ns
        self.read.append(part)
        return Tokens(frozenset({part}), False)


def asked(pipeline: SlowPipeline, *passages: tuple[int, ...]) -> list[frozenset[int] | str]:
    """The unknown ids of tables with these parts, or why they are not told."""
    tokens = TokensInFront(pipeline, "dataset", lambda: pipeline.now_ns)
    answers: list[frozenset[int] | str] = []
    for parts in passages:
        try:
            found = tokens.of(Passage("int64", parts=parts))
        except UntoldTokensError as lack:
            answers.append(str(lack))
        else:
            assert found is not None
            answers.append(found.out_of_vocabulary)
    return answers


def test_all_are_told_within_a_second() -> None:
    pipeline = SlowPipeline(SECOND_NS // 4)

    assert asked(pipeline, (0,), (1,), (2,), (3,)) == [{0}, {1}, {2}, {3}]


def test_none_is_read_after_a_second_in_all() -> None:
    pipeline = SlowPipeline(SECOND_NS * 3 // 5)
    first, second, *others = asked(pipeline, (0,), (1,), *((part,) for part in range(2, 26)))

    assert (first, second) == ({0}, {1})
    assert pipeline.read == [0, 1]
    assert len(others) == 24
    (reason,) = set(others)
    assert "training stands still meanwhile" in str(reason)


def test_the_parts_of_one_table_count_alike() -> None:
    pipeline = SlowPipeline(SECOND_NS * 3 // 5)
    (reason,) = asked(pipeline, (0, 0, 0, 0))

    assert pipeline.read == [0, 0]
    assert "training stands still meanwhile" in str(reason)


def test_each_pipeline_has_a_second_of_its_own() -> None:
    pipeline = SlowPipeline(2 * SECOND_NS)

    assert asked(pipeline, (0,)) == [{0}]
    assert asked(pipeline, (1,)) == [{1}]


@pytest.mark.parametrize("error", [UntoldTokensError("Lost at `Add`."), ValueError("no table")])
def test_what_one_table_lacks_costs_no_other(error: Exception) -> None:
    class Lost(SlowPipeline):
        def behind(self, part: int) -> Tokens | None:
            if part == 0:
                raise error
            return super().behind(part)

    reason, other = asked(Lost(1), (0,), (1,))

    assert other == {1}
    assert "Lost at `Add`." in str(reason) or "could not be read: ValueError" in str(reason)
