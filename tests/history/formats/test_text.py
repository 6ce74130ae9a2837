from __future__ import annotations

from pipediag.history.formats.text import render
from pipediag.history.metrics import METRICS
from pipediag.history.store import Point, Series
from tests.encoding.poisoned import POISON, acting, commands

STEP = METRICS[0]


def series(*numbers: float, commit: str | None = "0123456789abcdef") -> Series:
    points = tuple(
        Point(f"2026-01-{at:02}T00:00:00", commit, number) for at, number in enumerate(numbers, 1)
    )
    return Series("train.py", ("--lr", "1"), "fedc", STEP, points)


def test_a_trend_and_the_commit_that_moved_it() -> None:
    text = render([series(*[10.0, 10.1] * 5, *[13.0, 13.1] * 5)])
    assert text == (
        "train.py --lr 1 on fedc\n"
        "  Step        ▁▁▁▁▁▁▁▁▁▁██████████  13.1 ms, 20 measured\n"
        "              From 10.1 to 13.1 ms since 0123456789ab (2026-01-11).\n"
    )


def test_few_measurements_are_drawn_and_not_judged() -> None:
    assert render([series(10.0, 20.0, commit=None)]) == (
        "train.py --lr 1 on fedc\n"
        "  Step        ▁█  20 ms, 2 measured\n"
        "  A change is looked for from 8 measurements on.\n"
    )


def test_a_level_series_is_drawn_flat() -> None:
    assert "▁▁▁▁▁▁▁▁  10 ms, 8 measured\n" in render([series(*[10.0] * 8)])


def test_metrics_of_one_script_share_a_heading() -> None:
    text = render([series(10.0), series(11.0)])
    assert text.count("train.py") == 1
    assert text.count("A change is looked for") == 1


def test_nothing_is_said_to_be_nothing() -> None:
    assert render([]) == "The history is empty.\n"


def test_names_of_a_stranger_give_no_commands() -> None:
    points = tuple(Point(POISON, POISON, float(at)) for at in range(20))
    text = render([Series(POISON, (POISON,), POISON, STEP, points)])
    assert commands(text) == []
    assert not acting(text)
