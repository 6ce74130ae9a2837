"""Lines that wait for a framework's code have rows of their own, which say so."""

from __future__ import annotations

from pipediag.measures.run.epochs import Projected
from pipediag.measures.run.ledger import divided_by_lines, line_shares
from pipediag.measures.run.places import Place, Spent
from pipediag.session.ledger import IN_FRAMEWORK, OWN_LINE
from pipediag.session.timeline import SeenLine, SeenLines, parse_timeline, seen_line

S = 1_000_000_000


def line(number: int, ns: int, *, in_framework: bool = False) -> SeenLine:
    return SeenLine("train.py", number, "<module>", False, ns, in_framework)


def test_the_time_of_a_line_is_divided_by_whose_code_ran() -> None:
    before = Place("before_training")
    seen = SeenLines(0, 10 * S, (line(4, 3 * S), line(4, 5 * S, in_framework=True)))
    shares = line_shares([Spent(before, 0, 10 * S)], [seen], {before: 10 * S})
    whole = divided_by_lines({before: Projected(10 * S, 1, projected=False)}, shares)
    divided = {place: round(one.ns) for place, one in whole.items()}
    by_words = {place.what: ns for place, ns in divided.items() if place.line == 4}
    assert by_words == {OWN_LINE: 3 * S, OWN_LINE + IN_FRAMEWORK: 5 * S}
    assert divided[before] == 2 * S


def test_what_is_written_of_a_line_is_read_again() -> None:
    seen = SeenLines(0, S, (line(4, S, in_framework=True),))
    assert parse_timeline([seen_line(seen)]).seen == [seen]


def test_a_line_that_was_written_without_it_is_the_script_s() -> None:
    written = b'["lines", 0, 1, [["train.py", 4, "<module>", false, 1]]]'
    (seen,) = parse_timeline([written]).seen
    assert seen.lines[0].in_framework is False
