"""Ledgers against stamps, on runs made by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.ledger_comparison import (
    Judged,
    Native,
    Percents,
    Round,
    Stopped,
    differences,
    ended_run,
    medians,
    parts_of,
    percents,
    stopped_run,
    worst,
)
from benchmarks.ledger_stamps import Parts, Stamps, read_stamps
from benchmarks.ledger_tables import line, markdown, summary
from pipediag.session.ledger import Run, RunPart
from pipediag.vocabulary import RunScope

LEGS: tuple[Parts, ...] = (
    {"startup": 2.0, "before_training": 1.0, "compile": 1.0, "steps": 4.0, "epoch_end": 1.0},
    {"between_loops": 2.0, "compile": 1.0, "steps": 6.0},
    {"after_training": 1.5},
)
STAMPS = Stamps(began_s=100.0, ended_s=119.5, begun=2, legs=LEGS)


def ledger(
    parts: Parts, *, projected: float | None = None, scope: RunScope = "run", ours: float = 0.0
) -> Run:
    total = sum(parts.values())
    return Run(
        scope=scope,
        total_s=total,
        projected_total_s=projected,
        pipediag_s=ours,
        parts=[
            RunPart(part=part, seconds=s, percent=100 * s / total, basis="measured")
            for part, s in parts.items()
        ],
    )


def judged(total_error: float | None, steps: float) -> Judged:
    ended = ended_run(ledger({"startup": 5.0, "steps": 5.0}), STAMPS)
    stopped = Stopped("run", True, {"steps": 100.0}, {"steps": 100.0}, total_error)
    native: Percents = {"steps": steps, "evaluation": 100.0 - steps}
    return Judged("folds", [Round(ended, Native(10.0, native), stopped)])


def test_what_the_stamps_have_more_than_the_ledger_is_no_step_of_the_script() -> None:
    seen = STAMPS.parts()
    mine: Parts = {**seen, "steps": 7.0}
    ended = ended_run(ledger(mine, ours=3.5), STAMPS)
    assert ended.disturbed_s == pytest.approx(3.0)
    assert all(error == pytest.approx(0.0) for error in ended.errors.values())


def test_a_part_that_the_ledger_puts_elsewhere_shows_on_both_sides() -> None:
    mine = STAMPS.parts()
    mine["compile"], mine["steps"] = mine["compile"] + 1.0, mine["steps"] - 1.0
    errors = ended_run(ledger(mine), STAMPS).errors
    whole = sum(mine.values())
    assert errors["compile"] == pytest.approx(100.0 / whole)
    assert errors["steps"] == pytest.approx(-100.0 / whole)


def test_what_lies_around_the_script_is_no_part_of_the_comparison() -> None:
    run = ledger({"startup": 2.0, "steps": 8.0})
    around = RunPart(part="startup", seconds=1.0, percent=9, basis="measured", what="exit")
    run = run.model_copy(update={"parts": [*run.parts, around]})
    assert parts_of(run) == {"startup": 2.0, "steps": 8.0}


def test_a_stopped_run_is_held_against_the_native_one_up_to_that_training() -> None:
    # The native run has 7 s from its start-up to the end of the first training.
    run = ledger({"startup": 99.0, "steps": 7.7}, projected=106.7)
    stopped = stopped_run(run, 1, STAMPS)
    assert stopped.total_error == pytest.approx(10.0)
    assert set(stopped.native) == {"before_training", "compile", "steps", "epoch_end"}
    assert stopped_run(run, 2, STAMPS).native["between_loops"] > 0


def test_of_a_loop_without_a_known_end_the_shares_of_its_parts_are_compared() -> None:
    run = ledger({"steps": 0.8, "epoch_end": 0.2}, projected=1.0, scope="epoch")
    stopped = stopped_run(run, 1, STAMPS)
    assert stopped.total_error is None
    assert stopped.native == pytest.approx({"steps": 80.0, "epoch_end": 20.0})
    assert stopped.errors == pytest.approx({"steps": 0.0, "epoch_end": 0.0})


def test_a_run_that_was_over_before_it_was_stopped_is_held_against_all_of_the_native_one() -> None:
    stopped = stopped_run(ledger({"steps": 17.5}), 2, STAMPS)
    assert not stopped.projected
    assert stopped.total_error == pytest.approx(0.0)
    assert Judged("folds", [judged(5.0, 50.0).rounds[0]]).total_error == 5.0


def test_percents_differences_and_medians() -> None:
    assert percents({"steps": 3.0, "compile": 1.0}) == {"steps": 75.0, "compile": 25.0}
    assert percents({}) == {}
    errors = differences({"steps": 80.0}, {"steps": 70.0, "compile": 30.0})
    assert errors == {"compile": -30.0, "steps": 10.0}
    assert worst(errors) == ("compile", -30.0)
    assert worst({}) is None
    assert medians([{"steps": 1.0}, {"steps": 5.0, "compile": 9.0}, {}]) == {
        "steps": 1.0,
        "compile": 0.0,
    }


def test_a_missed_goal_is_told_in_words_and_counted() -> None:
    good, bad = judged(-9.0, 97.0), judged(12.0, 60.0)
    assert [miss for miss in good.misses if "native" in miss] == []
    assert "the projected total is +12.0 % off the native run" in bad.misses
    assert "steps is +40.0 % off the native run" in bad.misses
    assert summary([good, bad])[1].endswith("1 of 2 scripts.")
    assert "same run, carried on: 0 of 0 scripts" in summary([good, bad])[2]
    assert "1 of 2 scripts of which" in summary([good, bad])[3]
    assert line(bad).startswith("miss folds: native 10.0 s;")


def test_the_table_has_a_row_a_script_and_all_parts() -> None:
    text = markdown([judged(None, 50.0)], "Two cores.")
    assert text.startswith("Two cores.\n\n")
    assert "| `folds` | 10.0 s |" in text
    assert "| `folds` | after start-up: native stamps | - | - |" in text


def test_stamps_are_read_as_written_and_an_unknown_part_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "stamps.json"
    assert read_stamps(path) is None
    written = {"began": 1.0, "ended": 9.0, "begun": 1, "legs": [{"startup": 1.0}, {}]}
    path.write_text(json.dumps(written), encoding="utf-8")
    assert read_stamps(path) == Stamps(1.0, 9.0, 1, ({"startup": 1.0}, {}))
    path.write_text(json.dumps({**written, "legs": [{"lunch": 1.0}]}), encoding="utf-8")
    with pytest.raises(ValueError, match="lunch"):
        read_stamps(path)


def test_of_the_run_to_its_end_alone_nothing_else_is_told() -> None:
    alone = Judged("folds", [Round(judged(5.0, 97.0).rounds[0].ended)])
    assert "native -;" in line(alone)
    assert alone.scope == "-"
    text = markdown([alone], "Two cores.")
    assert "whole run: ledger" in text
    assert "native stamps" not in text
