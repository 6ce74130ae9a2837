"""Lines of the script in the ledger."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pipediag.measures.loops import PAUSES
from pipediag.measures.run.epochs import Projected
from pipediag.measures.run.ledger import RunBounds, measure_run
from pipediag.measures.run.places import Place, Spent
from pipediag.measures.run.script_lines import divided_by_lines, hottest_lines, line_shares
from pipediag.session.ledger import EVALUATING_LOOP, IN_FRAMEWORK, OWN_LINE, Run
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.session.timeline import SeenLine, SeenLines, Span, Timeline
from tests.recordings import make_block, make_plan, make_recorded_loop, make_recording, make_window
from tests.records import MS, SCRIPT

END = Place("epoch_end", loop_id="loop1")
BEFORE = Place("before_training")
IMPORTS = Place("startup", "imports", "train.py", 1)


def seen(start_ms: int, end_ms: int, *lines: SeenLine) -> SeenLines:
    return SeenLines(start_ms * MS, end_ms * MS, lines)


def a_line(line: int, ms: float, importing: bool = False, function: str = "<module>") -> SeenLine:
    return SeenLine("train.py", line, function, importing, round(ms * MS))


def own(place: Place, line: int) -> Place:
    return Place(place.part, "the script's own line", "train.py", line, place.loop_id)


SPENT = [Spent(BEFORE, 0, 1000 * MS), Spent(END, 1000 * MS, 1500 * MS)]
NS_AT = {BEFORE: 1000 * MS, END: 500 * MS}


def test_a_line_has_its_share_of_the_place_it_was_seen_at() -> None:
    shares = line_shares(
        SPENT, [seen(0, 900, a_line(3, 250)), seen(1000, 1400, a_line(4, 50))], NS_AT
    )

    assert shares == {BEFORE: {own(BEFORE, 3): 0.25}, END: {own(END, 4): 0.1}}


def test_a_line_is_put_where_it_was_met_and_not_where_most_of_its_group_lies() -> None:
    """A wait for a first batch is known when it is over: looks went on meanwhile."""
    waiting = Place("epoch_start", loop_id="loop1")
    spent = [Spent(BEFORE, 0, 1000 * MS), Spent(waiting, 1000 * MS, 1500 * MS)]
    at_wait = replace(a_line(4, 400), at_ns=1300 * MS)
    before = replace(a_line(3, 250), at_ns=300 * MS)

    assert line_shares(spent, [seen(0, 1500, before, at_wait)], NS_AT) == {
        BEFORE: {own(BEFORE, 3): 0.25}
    }


def test_what_a_loop_that_evaluates_lets_go_of_is_a_part_of_the_evaluation() -> None:
    evaluation = Place("evaluation", EVALUATING_LOOP, "train.py", 7, "loop1")
    spent = [
        Spent(END, 0, 100 * MS),
        Spent(evaluation, 100 * MS, 900 * MS),
        Spent(END, 900 * MS, 1300 * MS),
    ]
    groups = [seen(900, 1300, a_line(7, 300), a_line(8, 100))]

    assert line_shares(spent, groups, NS_AT) == {END: {evaluation: 0.6, own(END, 8): 0.2}}


@pytest.mark.parametrize(("ms", "told"), [(49.9, False), (50, True)])
def test_a_line_that_was_met_by_chance_is_none_but_an_import_is_one(ms: float, told: bool) -> None:
    (shares,) = line_shares(
        SPENT, [seen(0, 900, a_line(3, ms), a_line(1, 2, True))], NS_AT
    ).values()

    assert (own(BEFORE, 3) in shares) == told
    assert shares[IMPORTS] == 0.002


SAVES = Place("epoch_end", "the callback Saves", "train.py", 7, "loop1")


def test_a_callback_is_at_the_line_of_it_that_was_met_for_longest() -> None:
    spent = [Spent(BEFORE, 0, 1000 * MS), Spent(SAVES, 1000 * MS, 1500 * MS)]
    groups = [
        seen(1000, 1500, a_line(9, 80), a_line(10, 300)),
        seen(1000, 1500, replace(a_line(99, 900), file="other.py")),
        seen(0, 900, a_line(3, 800)),
    ]

    assert hottest_lines(spent, groups) == {SAVES: 10}


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


KEEPS = SeenLine(SCRIPT, 41, "keeps", importing=False, ns=150 * MS)


def ledger(loop: RecordedLoop, *calls: Span, line: SeenLine = KEEPS) -> Run:
    """Two epochs of 200 ms, and 200 ms after the first, 150 of them in one line."""
    spans = [
        Span(1, "script", 0, 600 * MS),
        *calls,
        Span(3, "steps", 0, 200 * MS, "loop1"),
        Span(4, "steps", 400 * MS, 600 * MS, "loop1"),
    ]
    seen = [SeenLines(200 * MS, 400 * MS, (line,))]
    operations = [*make_plan()[:2], replace(make_plan()[2], cardinality=20)]
    window = make_window("baseline", make_block(40))
    recording = make_recording(loops=[loop], windows=[window], operations=operations)
    run = measure_run(Timeline(spans, seen), recording, RunBounds(0, 600 * MS, "stopped"))
    assert isinstance(run, Run)
    return run


def seconds_in_line(run: Run) -> float:
    return sum(part.seconds for part in run.parts if part.line == 41)


def test_a_line_that_a_fit_comes_to_after_each_epoch_is_carried_on_and_not_counted_twice() -> None:
    keras = replace(make_recorded_loop().keras, epochs=10, steps_per_epoch=20)  # type: ignore[type-var]
    loop = make_recorded_loop(keras=keras, planned_steps=200, fill_ns=0)
    run = ledger(loop, Span(2, "fit", 0, 600 * MS, "fit", SCRIPT, 20))
    assert run.seconds_of("epoch_end") == pytest.approx(10 * 0.2)
    assert seconds_in_line(run) == pytest.approx(10 * 0.15)


def test_letting_go_of_an_iterator_that_was_slow_once_is_not_carried_on() -> None:
    keras = replace(make_recorded_loop().keras, epochs=10, steps_per_epoch=20)  # type: ignore[type-var]
    loop = make_recorded_loop(keras=keras, planned_steps=200, fill_ns=0)
    fit = Span(2, "fit", 0, 600 * MS, "fit", SCRIPT, 20)
    lets_go = replace(KEEPS, line=20, function="<module>")
    run = ledger(loop, fit, line=lets_go)
    assert run.seconds_of("epoch_end") == pytest.approx(0.2)
    assert [one for one in run.not_seen if one == PAUSES]
    assert not [one for one in ledger(loop, fit).not_seen if one == PAUSES]
