from __future__ import annotations

import pytest

from pipediag.rules.run.blocks import NEIGHBOURS, blocks_of
from pipediag.session.ledger import IN_FRAMEWORK, OWN_LINE, READING
from tests.ledgers import make_part


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
