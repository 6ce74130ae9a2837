"""The sentence on the part of the run that costs most."""

from __future__ import annotations

from typing import Any, get_args

import pytest

from pipediag.facts.run import Where
from pipediag.measures.verdict.culprits import Culprit, ShuffleFill
from pipediag.measures.verdict.decision import first_batches_of_run_sentence, run_sentence
from pipediag.session.ledger import RunPart
from pipediag.vocabulary import Bottleneck, RunPartName
from tests.ledgers import make_part, make_run


def said(
    row: RunPart | None, part: RunPartName = "compile", bottleneck: Bottleneck = "input"
) -> str:
    """Of 40 s in the part."""
    run = make_run(make_part(part, 40.0))
    return run_sentence(run, Where(part, 40.0, row), bottleneck)


def placed(seconds: float, **overrides: Any) -> RunPart:
    return make_part("compile", seconds, **{"file": "train.py", "line": 7, **overrides})


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ("startup", "passes while Python and its modules start."),
        ("before_training", "passes before the first training step."),
        ("compile", "goes to tracing and compiling functions."),
        ("epoch_start", "is spent waiting for the first batch of each epoch."),
        ("evaluation", "is evaluation."),
        ("epoch_end", "lies between the epochs, in callbacks and other code."),
        ("between_loops", "lies between the trainings."),
        ("after_training", "comes after the training."),
    ],
)
def test_each_part_has_its_words(part: RunPartName, words: str) -> None:
    assert said(None, part) == (
        f"40 % of the run (40 s of 100 s) {words} Its steps are input-bound."
    )


@pytest.mark.parametrize("bottleneck", get_args(Bottleneck))
def test_what_limits_the_steps_is_said_in_their_own_words(bottleneck: Bottleneck) -> None:
    words = {
        "balanced": "Nothing by itself limits its steps.",
        "inconclusive": "What limits its steps is not settled.",
    }
    bound = f"Its steps are {bottleneck}-bound."
    assert said(None, bottleneck=bottleneck).endswith(f". {words.get(bottleneck, bound)}")


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (placed(40.0, what="`f`"), "functions: `f` at train.py:7. Its"),
        (placed(39.7, what="`f`"), "functions: `f` at train.py:7. Its"),
        (placed(39.6, what="`f`"), "functions: 99 % of it `f` at train.py:7. Its"),
        (placed(40.0), "functions: code at train.py:7. Its"),
        (placed(40.0, loop_id="loop_0"), "functions: a loop at train.py:7. Its"),
        (placed(40.0, count=1), "functions: code at train.py:7. Its"),
        (placed(40.0, count=2), "functions: code at train.py:7, 2 times. Its"),
        (placed(40.0, count=1500), "functions: code at train.py:7, 1,500 times. Its"),
        (placed(40.0, line=None), "functions. Its"),
    ],
)
def test_the_row_that_takes_most_is_named_with_its_share_and_how_often_it_came(
    row: RunPart, words: str
) -> None:
    assert words in said(row)


@pytest.mark.parametrize(
    ("later_s", "gain"),
    [
        (30.0, ". Without all but the first of these waits it would be 1.43x as fast."),
        (0.01, "."),
        (None, "."),
    ],
)
def test_waits_for_first_batches_are_of_the_run_with_who_is_behind_them(
    later_s: float | None, gain: str
) -> None:
    run = make_run(make_part("epoch_start", 40.0))
    start = (
        "Highly input-bound: 40 % of the run (40 s of 100 s) is spent waiting for the first batch "
        "of each epoch"
    )
    maker = Culprit("`map`", "a.py", 3)
    fill = ShuffleFill(Culprit("`shuffle`", "a.py", 4), maker)

    part = make_run(make_part("epoch_start", 40.0), scope="epoch")
    of_epoch = first_batches_of_run_sentence(part, 40.0, None)
    assert of_epoch.startswith("Highly input-bound: 40 % of an epoch (40 s of 100 s) is spent")
    assert of_epoch.endswith(". Without any of these waits it would be 1.67x as fast.")
    assert first_batches_of_run_sentence(run, later_s, None) == start + gain
    assert first_batches_of_run_sentence(run, later_s, maker) == (
        f"{start}; `map` at a.py:3 costs most{gain}"
    )
    assert first_batches_of_run_sentence(run, later_s, fill) == (
        f"{start}; `shuffle` at a.py:4 fills meanwhile with what `map` at a.py:3 makes{gain}"
    )


def test_a_wait_for_first_batches_says_what_goes_on_meanwhile() -> None:
    row = make_part(
        "epoch_start",
        40.0,
        file="train.py",
        line=20,
        loop_id="loop_0",
        count=8,
        waits_for="`shuffle` fills with what `map` makes",
        waits_for_file="train.py",
        waits_for_line=14,
    )
    assert said(row, "epoch_start") == (
        "40 % of the run (40 s of 100 s) is spent waiting for the first batch of each epoch: a "
        "loop at train.py:20, 8 times, while `shuffle` fills with what `map` makes "
        "(train.py:14). Its steps are input-bound."
    )
