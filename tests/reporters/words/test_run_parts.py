from __future__ import annotations

import pytest

from pipediag.reporters.words import run_parts
from pipediag.session.ledger import BETWEEN_ROUNDS, COMES_ONCE, FURTHER_ROUNDS, RunGain
from tests import factories


def gain(**overrides: object) -> RunGain:
    values = {
        "speedup": 1.5,
        "before_s": 24.6,
        "after_s": 16.4,
        "basis": "measured",
        "scope": "run",
    }
    return RunGain.model_validate({**values, **overrides})


def test_parts_come_in_the_order_of_a_run_with_their_places() -> None:
    parts = run_parts.parts_of(factories.make_run())

    assert [part.name for part in parts] == ["startup", "before_training", "steps", "epoch_end"]
    assert [part.seconds for part in parts] == [2.5, 2.5, 5.0, 10.0]
    assert [part.basis for part in parts] == ["measured", "measured", "projected", "projected"]
    assert [row.what for row in parts[1].rows] == ["in `parse`"]


def test_what_takes_most_is_named_first_in_one_line() -> None:
    line = run_parts.in_one_line(factories.make_run()).replace("\u00a0", " ")

    assert line == (
        "between epochs 50.0 %, steps 25.0 %, start-up and imports 12.5 %, before training 12.5 %"
    )


def test_a_part_under_a_percent_is_left_to_the_table() -> None:
    run = factories.make_run(
        parts=[factories.make_part("steps", 19.9), factories.make_part("startup", 0.1)]
    )

    assert "start-up" not in run_parts.in_one_line(run)


def test_what_the_percents_are_of() -> None:
    def whole(**overrides: object) -> str:
        return run_parts.whole(factories.make_run(**overrides)).replace("\u00a0", " ")

    assert whole() == "The run would take 20.0 s, 10 epochs; 8.00 s of it were seen"
    assert whole(projected_total_s=None, epochs_planned=None) == "The run took 8.00 s"
    over = {"projected_total_s": None, "epochs_planned": 100, "epochs_seen": 12.0}
    assert whole(**over) == "The run took 8.00 s, 12 epochs"
    failed = whole(**over, projected_missing="It did not come to its end.")
    assert failed == "The run took 8.00 s, 12 epochs begun"
    assert whole(scope="epoch") == "Of an epoch, 20.0 s"
    assert whole(scope="1000_steps") == "Of 1,000 steps, 20.0 s"


@pytest.mark.parametrize("unseen", [FURTHER_ROUNDS, BETWEEN_ROUNDS])
def test_rounds_that_were_not_seen_make_it_longer_than_that(unseen: str) -> None:
    told = run_parts.whole(factories.make_run(not_seen=[unseen, "what the script does after it"]))
    assert told.replace("\u00a0", " ").startswith("The run would take at least 20.0 s")


def test_remarks_say_what_is_not_in_it() -> None:
    run = factories.make_run(projected_missing="Nothing says how long.")

    first, second, third = run_parts.remarks(run)

    assert first == "Nothing says how long."
    assert second == "Not in it, as it was not seen: what the script does after this training."
    assert third.replace("\u00a0", " ") == "What pipediag took beside, 1.50 s, is not in it."
    assert run_parts.remarks(factories.make_run(not_seen=[], pipediag_s=0.05)) == []


def test_of_an_epoch_all_that_was_seen_of_the_run_is_told_beside_it() -> None:
    seen = [
        factories.make_part("before_training", 6.0, 8.0),
        factories.make_part("startup", 1.0, 8.0),
        factories.make_part("steps", 0.96, 8.0),
        factories.make_part("epoch_end", 0.04, 8.0),
    ]
    run = factories.make_run(
        scope="epoch", not_seen=[COMES_ONCE], seen=seen, total_s=8.0, pipediag_s=0.0
    )

    once, told = run_parts.remarks(run)

    assert once == "Not in it: what comes once, as start-up and what is before and after it."
    assert told.replace("\u00a0", " ") == (
        "All that was seen of the run, 8.00 s: before training 75.0 %, start-up and imports "
        "12.5 %, steps 12.0 %."
    )
    assert run_parts.seen_in_one_line(factories.make_run()) is None


def test_a_gain_for_the_run_has_its_seconds() -> None:
    def said(found: RunGain | None) -> str | None:
        words = run_parts.gain(found)
        return words.replace("\u00a0", " ") if words else None

    assert said(gain()) == "1.50x for the run (24.6 s to 16.4 s)"
    assert said(gain(ci95=(1.4, 1.6))) == "1.50x [1.40, 1.60] for the run (24.6 s to 16.4 s)"
    assert said(gain(basis="at most")) == "at most 1.50x for the run (24.6 s to 16.4 s)"
    assert said(gain(scope="epoch")) == "1.50x for an epoch (24.6 s to 16.4 s)"
    assert said(None) is None


def test_a_row_says_how_often_it_came() -> None:
    rows = factories.make_run().parts

    assert run_parts.row_title(rows[-1]) == "the callback Save, 10 times"
    assert run_parts.row_title(rows[3]) == "the loop, 500 times"
    assert run_parts.row_title(rows[2]) == "the rest"


def test_whose_epochs_they_are_is_said_where_they_are_the_user_s() -> None:
    run = factories.make_run(epochs_given=True)

    assert run_parts.whole(run).replace("\u00a0", " ") == (
        "The run would take 20.0 s, 10 epochs as given by --epochs; 8.00 s of it were seen"
    )


@pytest.mark.parametrize(
    ("scope", "once_s", "ending"),
    [
        ("run", 0.6, "16.4 s, with 0.60 s more once to trace and compile)"),
        ("run", -2.0, "16.4 s, with 2.00 s less once to trace and compile)"),
        ("epoch", 0.6, "16.4 s, and 0.60 s more once to trace and compile)"),
        ("run", 0.01, "16.4 s)"),
        ("run", None, "16.4 s)"),
    ],
)
def test_what_is_traced_once_more_stands_behind_its_seconds(
    scope: str, once_s: float | None, ending: str
) -> None:
    words = run_parts.gain(gain(scope=scope, once_s=once_s))
    assert words is not None
    assert words.replace("\u00a0", " ").endswith(ending)
