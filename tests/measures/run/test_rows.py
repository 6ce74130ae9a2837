"""Places that take next to nothing join what they are a part of."""

from __future__ import annotations

from pipediag.measures.run.epochs import Projected
from pipediag.measures.run.ledger import without_the_smallest
from pipediag.measures.run.places import Place

END = Place("epoch_end", loop_id="loop1")
SMALL = Place("epoch_end", "the callback History", "train.py", 7, "loop1")
LARGE = Place("epoch_end", "the callback Saves", "train.py", 9, "loop1")
STEPS = Place("steps", None, "train.py", 20, "loop1")


def test_a_small_place_joins_its_part_at_the_same_loop() -> None:
    whole = {SMALL: Projected(1.9, 3), STEPS: Projected(900.0, 5), LARGE: Projected(98.1, 2)}

    assert without_the_smallest(whole) == {
        END: Projected(1.9, 3),
        STEPS: whole[STEPS],
        LARGE: whole[LARGE],
    }


def test_it_is_added_to_what_is_there() -> None:
    whole = {END: Projected(97.0, None), SMALL: Projected(1.0, 3), STEPS: Projected(902.0, 5)}

    assert without_the_smallest(whole)[END] == Projected(98.0, None)


def test_two_thousandths_are_enough_for_a_row() -> None:
    whole = {SMALL: Projected(2.0, 3), STEPS: Projected(998.0, 5)}

    assert without_the_smallest(whole) == whole


def test_a_part_as_a_whole_stays_however_small() -> None:
    whole = {END: Projected(0.1, None), STEPS: Projected(999.9, 5)}

    assert without_the_smallest(whole) == whole


def test_nothing_is_nothing() -> None:
    assert without_the_smallest({}) == {}
