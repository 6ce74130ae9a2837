from __future__ import annotations

import pytest

from pipediag.rules.evaluation import COSTLY_EVALUATION
from pipediag.rules.rule import Meta
from pipediag.rules.script_work import (
    NEIGHBOURS,
    SLOW_EPOCH_END,
    WORK_AFTER_TRAINING,
    blocks_of,
    check_slow_epoch_end,
    check_work_after_training,
)
from pipediag.session.ledger import (
    AFTERWARDS,
    AN_EPOCHS_END,
    EXITING,
    IN_FRAMEWORK,
    OWN_LINE,
    READING,
    RunPart,
)
from pipediag.session.model import Session
from tests import factories
from tests.ledgers import make_part
from tests.rules.sessions import only


@pytest.mark.parametrize(
    ("what", "block"),
    [
        ("in `read`", "in `read`"),
        ("in `read.<locals>.<listcomp>`", "in `read`"),
        ("in `Reader.read.<locals>.<genexpr>`" + IN_FRAMEWORK, "in `Reader.read`"),
        ("in `read.<locals>.parse`", "in `read.<locals>.parse`"),
        ("in `<dictcomp>`", OWN_LINE),
        (OWN_LINE + IN_FRAMEWORK, OWN_LINE),
    ],
)
def test_what_belongs_to_a_function(what: str, block: str) -> None:
    (found,) = blocks_of([make_part("before_training", 3.0, what=what, file="a.py", line=4)])
    assert found.what == block
    assert found.in_framework_s == (3.0 if what.endswith(IN_FRAMEWORK) else 0.0)


def test_neighbours_are_one_loop_of_a_file() -> None:
    lines = [(4, "a.py"), (4 + NEIGHBOURS, "a.py"), (5 + 2 * NEIGHBOURS, "a.py"), (5, "b.py")]
    rows = [
        make_part("epoch_end", seconds, what=OWN_LINE, file=file, line=line)
        for seconds, (line, file) in enumerate(lines, start=1)
    ]
    blocks = blocks_of(rows)
    assert [[row.line for row in block.rows] for block in blocks] == [[5], [4, 7], [11]]


def test_data_sets_are_read_each_by_itself() -> None:
    rows = [
        make_part("before_training", 1.0, what=READING, file="a.py", line=line) for line in (4, 5)
    ]
    assert len(blocks_of(rows)) == 2


def test_how_often_is_what_a_row_says() -> None:
    rows = [
        make_part("epoch_end", 1.0, what="in `draw`", file="a.py", line=line, count=count)
        for line, count in ((4, None), (5, 7))
    ]
    (block,) = blocks_of(rows)
    assert (block.count, block.seconds, block.hottest.line) == (7, 2.0, 4)


def test_what_is_not_known_is_in_no_block() -> None:
    assert blocks_of([make_part("epoch_end", 9.0)]) == []


def test_what_is_not_known_hides_nothing_behind_it() -> None:
    rows = [make_part("epoch_end", 9.0), make_part("epoch_end", 1.0, what="in `draw`")]
    assert [block.what for block in blocks_of(rows)] == ["in `draw`"]


def test_lines_without_a_file_are_no_neighbours_of_those_with_one() -> None:
    rows = [
        make_part("epoch_end", seconds, what=OWN_LINE, file=file, line=line)
        for seconds, file, line in ((3.0, "z.py", 4), (2.0, None, None), (1.0, "A.py", 2))
    ]
    blocks = blocks_of(rows)
    assert [[row.file for row in block.rows] for block in blocks] == [["z.py"], [None], ["A.py"]]


def without(*not_seen: str, parts: tuple[RunPart, ...] = ()) -> Session:
    steps = RunPart(part="steps", seconds=20.0, percent=100.0, basis="projected")
    run = factories.make_run(not_seen=list(not_seen), parts=[steps, *parts])
    return factories.make_session(run=run)


@pytest.mark.parametrize(
    ("meta", "lacks"),
    [
        (COSTLY_EVALUATION, AN_EPOCHS_END),
        (SLOW_EPOCH_END, AN_EPOCHS_END),
        (WORK_AFTER_TRAINING, AFTERWARDS),
    ],
)
def test_what_a_stopped_script_did_not_come_to_is_not_said_to_be_fine(
    meta: Meta, lacks: str
) -> None:
    unseen = only(meta, without(lacks))
    assert (unseen.status, lacks in unseen.advice) == ("not-applicable", True)
    assert only(meta, without()).status == "pass"


def test_an_exit_that_was_reckoned_is_not_the_work_after_the_training() -> None:
    leaving = RunPart(
        part="after_training", seconds=1.0, percent=5.0, basis="projected", what=EXITING
    )
    [unseen] = check_work_after_training(without(AFTERWARDS, parts=(leaving,)))
    assert unseen.status == "not-applicable"


def test_what_is_known_of_a_part_is_judged() -> None:
    """As where one of several trainings came to the end of an epoch."""
    short = RunPart(part="epoch_end", seconds=0.1, percent=0.5, basis="measured")
    [seen] = check_slow_epoch_end(without(AN_EPOCHS_END, parts=(short,)))
    assert seen.status == "pass"
