"""What first batches wait for, told at their rows of the ledger."""

from __future__ import annotations

import pytest

from pipediag.measures.run.ledger import with_first_waits_told
from pipediag.session.ledger import MAKING, RunPart
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_operation
from tests.rules.sessions import batch, session_of, source

SHUFFLE = make_operation("shuffle", "shuffle", line=14)
CHEAP = make_operation("cheap", "map", line=11, latency_ms_per_step=0.1)
COSTLY = make_operation("costly", "interleave", line=12, latency_ms_per_step=5.0)
GENERATOR = make_operation("gen", "from_generator", line=3)
READER = make_operation("read", "TFRecordDataset", line=5, helper="read_all")


def told(*ops: Operation, row: RunPart | None = None) -> list[tuple[str | None, int | None]]:
    starts = row or make_part("epoch_start", 20.0, loop_id="loop_0", line=20)
    session = session_of(*ops, loops=[make_loop()], run=make_run(starts))
    run = with_first_waits_told(session).run
    assert run is not None
    return [(row.waits_for, row.waits_for_line) for row in run.parts]


@pytest.mark.parametrize(
    ("ops", "words", "line"),
    [
        (
            (source(), COSTLY, CHEAP, SHUFFLE, batch()),
            "`shuffle` fills with what `interleave` makes",
            14,
        ),
        ((READER, SHUFFLE, COSTLY, batch()), "`TFRecordDataset` of `read_all` opens its files", 5),
        (
            (source(), COSTLY, SHUFFLE, make_operation("late", "shuffle", line=19), batch()),
            "`shuffle` fills with what `interleave` makes",
            19,
        ),
        ((GENERATOR, SHUFFLE, batch()), "`shuffle` fills with what `from_generator` makes", 14),
        ((GENERATOR, COSTLY, batch()), "the generator of `from_generator` starts", 3),
        ((READER, batch()), "`TFRecordDataset` of `read_all` opens its files", 5),
    ],
)
def test_a_wait_is_told_by_what_has_to_start(
    ops: tuple[Operation, ...], words: str, line: int
) -> None:
    assert told(*ops) == [(words, line), (None, None)]


def test_of_numbers_that_are_shuffled_nothing_is_told() -> None:
    assert told(source(), SHUFFLE, COSTLY, batch()) == [(None, None), (None, None)]


@pytest.mark.parametrize(
    "row",
    [
        make_part("epoch_start", 20.0, loop_id="loop_1", line=20),
        make_part("epoch_start", 20.0, loop_id="loop_0", line=20, what=MAKING),
        make_part("epoch_start", 20.0, loop_id="loop_0"),
        make_part("epoch_end", 20.0, loop_id="loop_0", line=20),
    ],
    ids=["another loop", "iterators", "what is left", "another part"],
)
def test_other_rows_stay_as_they_are(row: RunPart) -> None:
    assert told(GENERATOR, batch(), row=row) == [(None, None)] * 2


@pytest.mark.parametrize(
    "session",
    [
        session_of(source(), batch(), loops=[make_loop()], run=make_run()),
        session_of(SHUFFLE, loops=[make_loop()], run=None),
        make_session(loops=[], run=make_run()),
    ],
    ids=["nothing to start", "no ledger", "no loop"],
)
def test_where_nothing_is_known_nothing_is_told(session: Session) -> None:
    assert with_first_waits_told(session) == session
