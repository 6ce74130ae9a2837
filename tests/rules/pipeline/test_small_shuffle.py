from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.pipeline import small_shuffle
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_loop, make_session
from tests.records import make_operation
from tests.rules.sessions import batch, only, session_of, source


def shuffle(buffer: int | None, id: str = "shuffle") -> Operation:
    return make_operation(id, "shuffle", line=5, parameters={"buffer_size": buffer})


@pytest.mark.parametrize(
    ("session", "words"),
    [
        (session_of(source(), shuffle(32), batch(32)), "no larger than a batch"),
        (session_of(source(), shuffle(64), batch(32)), "holds 64 of 10000"),
        (session_of(source(), batch(32, cardinality=313), shuffle(10)), "above `batch` at line 9"),
    ],
)
def test_fails_as_a_matter_of_quality(session: Session, words: str) -> None:
    finding = only(small_shuffle, session)
    assert (finding.status, finding.line) == ("fail", 5)
    assert words in finding.advice
    assert finding.speedup_at_most is None


def test_a_batch_of_the_framework_is_not_the_user_s_to_move() -> None:
    made = batch(32, cardinality=313, made_by_framework=True)
    advice = only(small_shuffle, session_of(source(), made, shuffle(10))).advice
    assert advice.startswith("Pass `batch_size=None` to the call at line 9, and put `shuffle`")
    csv = made.model_copy(update={"helper": "make_csv_dataset"})
    advice = only(small_shuffle, session_of(source(), csv, shuffle(10))).advice
    assert advice.startswith("Put `.unbatch()` behind the call at line 9, and put `shuffle`")


@pytest.mark.parametrize(
    "session",
    [
        session_of(source(), shuffle(1000), batch(32)),
        session_of(source(cardinality=16), shuffle(16), batch(32)),
        session_of(source(), batch(32, cardinality=313), shuffle(313)),
        session_of(source(), shuffle(10_000, "first"), make_operation("m", "map"), batch(32)),
    ],
)
def test_near_misses_pass(session: Session) -> None:
    assert only(small_shuffle, session).status == "pass"


def test_a_small_buffer_behind_a_large_one_passes() -> None:
    from tests.rules.sessions import run

    session = session_of(source(), shuffle(10_000, "first"), shuffle(16), batch(32))
    assert [finding.status for finding in run(small_shuffle, session)] == ["pass", "pass"]


def test_missing_data() -> None:
    assert (
        only(small_shuffle, session_of(source(), shuffle(None), batch())).status == "inconclusive"
    )
    assert only(small_shuffle, session_of(source(), batch())).status == "not-applicable"
    assert only(small_shuffle, make_session(pipeline=None)).status == "inconclusive"


def test_a_buffer_of_a_batch_mixes_nothing_however_many_elements_there_are() -> None:
    unknown = session_of(source(cardinality=None), shuffle(32), batch(32))
    assert "no larger than a batch" in only(small_shuffle, unknown).advice


@pytest.mark.parametrize(("buffer", "status"), [(100, "pass"), (99, "fail"), (33, "fail")])
def test_a_buffer_has_to_hold_its_part_of_the_elements(buffer: int, status: str) -> None:
    finding = only(small_shuffle, session_of(source(), shuffle(buffer), batch(32)))
    assert finding.status == status


def test_elements_are_counted_before_they_are_repeated() -> None:
    repeat = make_operation("repeat", "repeat", cardinality=1_000_000)
    session = session_of(source(cardinality=100), repeat, shuffle(100), batch(32))
    finding = only(small_shuffle, session)
    assert (finding.status, finding.evidence["elements"]) == ("pass", 100)


def interleaved(buffer: int, *behind: Operation, **loop: Any) -> Session:
    """Ten files, each of unknown length, as the standard pipeline over TFRecords reads them."""
    interleave = make_operation("interleave", "interleave", cardinality=None)
    values = {"batch_size": 32, "steps": 1000, "iterators": 4, **loop}
    return session_of(
        source(cardinality=10),
        interleave,
        shuffle(buffer),
        *(behind or (batch(32),)),
        loops=[make_loop(**values)],
    )


@pytest.mark.parametrize(
    ("buffer", "status"), [(64, "fail"), (90, "not-applicable"), (107, "pass")]
)
def test_behind_an_interleave_it_counts_by_epochs(buffer: int, status: str) -> None:
    # 32,000 examples in three epochs and a part of a fourth: 8,000 to 10,666 each.
    finding = only(small_shuffle, interleaved(buffer))
    assert (finding.status, finding.evidence["elements"]) == (status, 8000)


@pytest.mark.parametrize(
    "session",
    [
        interleaved(64, iterators=1),
        interleaved(64, batch_size=None),
        interleaved(64, make_operation("repeat", "repeat"), batch(32)),
        interleaved(64, make_operation("filter", "filter"), batch(32)),
        session_of(source(cardinality=None), shuffle(1000), batch(32)),
    ],
)
def test_files_are_no_elements(session: Session) -> None:
    finding = only(small_shuffle, session)
    assert (finding.status, finding.evidence["elements"]) == ("not-applicable", None)
