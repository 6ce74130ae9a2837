"""The forms of a comparison, in full."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

import pytest

from pipediag.comparison import Comparison, compare
from pipediag.comparison.formats import render
from pipediag.comparison.formats.markdown import LONGEST
from pipediag.comparison.result import Quantity, ToldFinding
from pipediag.session.run import Script
from tests.comparison.sides import run_of, runs_of
from tests.factories import make_finding
from tests.records import make_steps

LABELS = ("reports/base", "reports/head")


def repeated() -> Comparison:
    return compare(
        runs_of(10.0, 10.1, 9.9),
        runs_of(13.0, 13.1, 12.9, input_wait=40.0, findings=[make_finding()]),
        labels=LABELS,
    )


def test_text_of_three_runs_each() -> None:
    assert render("text", repeated()) == (
        "reports/head against reports/base\n"
        "  REGRESSED     Step: 10 to 13 ms, +30.0 %\n"
        "                99 % interval +25.5 to +34.6 %, from 3 and 3 runs\n"
        "                base 10, 10.1, 9.9; head 13, 13.1, 12.9\n"
        "                More than chance, and at least the 5 % that count.\n"
        "  REGRESSED     Run: 20 to 26 s, +30.0 %\n"
        "                99 % interval +25.5 to +34.6 %, from 3 and 3 runs\n"
        "                base 20, 20.2, 19.8; head 26, 26.2, 25.8\n"
        "                More than chance, and at least the 5 % that count.\n"
        "                Input wait, of the step: 20 to 40 %, +20.0 points\n"
        "                Overhead, of the step: 5 to 5 %, +0.0 points\n"
        "                Start-up and imports: 1 to 1 s, +0.0 %\n"
        "                Steps: 19 to 25 s, +31.6 %\n"
        "  New finding: parallel-map at train.py:12: A stateful map runs one element at a "
        "time.\n"
        "\n"
        "Comparison: regressed (exit status 1).\n"
    )


@pytest.mark.parametrize("form", ["text", "markdown"])
def test_places_are_told_from_the_repositorys_root(
    form: Literal["text", "markdown"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "ci").mkdir()
    monkeypatch.chdir(tmp_path / "ci")
    found = make_finding(file=str(tmp_path / "input" / "train.py"))
    text = render(form, compare(runs_of(10.0), runs_of(13.0, findings=[found])))

    assert "at input/train.py:12" in text
    assert str(tmp_path) not in text


def test_text_of_single_runs() -> None:
    text = render("text", compare([run_of(10.0)], [run_of(10.5)], labels=LABELS))
    lines = text.splitlines()

    assert lines[1] == "  SAME          Step: 10 to 10.5 ms, +5.0 %"
    assert "from 10 and 10 stretches of steps, whose medians differ by +5.0 %" in lines[2]
    assert lines[-1] == "Comparison: same (exit status 0)."
    assert all(len(line) < 200 for line in lines)


def test_the_change_is_that_of_the_values_beside_it() -> None:
    bursts = make_steps(mean_ms=12.0, median_ms=10.0, samples_ms=[10.0, 10.1, 10.2, 17.0] * 10)
    late = make_steps(mean_ms=12.0, median_ms=10.0, samples_ms=[10.0] * 32 + [20.0] * 8)
    lines = render("text", compare([run_of(steps=bursts)], [run_of(steps=late)])).splitlines()

    assert lines[1].endswith("Step: 12 to 12 ms, +0.0 %")
    assert "whose medians differ by -15.4 %" in lines[2]


def test_a_change_within_single_runs_that_does_not_count_is_not_called_chance() -> None:
    text = render("text", compare([run_of(10.0)], [run_of(11.8)], labels=LABELS))
    assert (
        "Less than the 25 % that count between single runs, and more than chance within them: "
        "three runs of each tell.\n"
    ) in text


def test_what_decides_goes_first() -> None:
    run = Quantity("run", "Run", "s", (10.0,), (13.0,), outcome="regressed")
    step = Quantity("step", "Step", "ms", (10.0,), (13.0,), outcome="inconclusive")
    share = Quantity("input-wait", "Input wait", "percent", (1.0,), (2.0,))
    lines = render("text", Comparison(*LABELS, quantities=(share, step, run))).splitlines()
    assert [line.split(":")[0].split()[-1] for line in lines[1:4]] == ["Run", "Step", "wait"]


def test_a_script_that_failed() -> None:
    script = Script(path="train.py", args=[], outcome="killed", status=-9, detail="Out of memory")
    failed = compare([run_of()], [run_of(script=script, steps=None)], labels=LABELS)

    assert render("text", failed) == (
        "reports/head against reports/base\n"
        "  The script ended before enough steps were seen: Out of memory (its own status: -9).\n"
        "\n"
        "Comparison: not made (exit status 3).\n"
    )
    assert "Out of memory" in render("markdown", failed)
    assert json.loads(render("json", failed))["exit_status"] == 3


def test_markdown_has_a_row_for_each_quantity() -> None:
    text = render("markdown", repeated())
    rows = [line for line in text.splitlines() if line.startswith("| regressed |")]

    assert rows[0].startswith("| regressed | Step | 10 to 13 ms | \\+30.0 % | \\+")
    assert "- New finding: parallel-map at train.py:12:" in text
    assert text.endswith("Comparison: regressed (exit status 1).\n")


def test_markdown_leaves_room_for_a_comment() -> None:
    many = tuple(ToldFinding("missing-cache", "x" * 3_000, None, None) for _ in range(100))
    text = render("markdown", Comparison(*LABELS, quantities=(), new=many))
    assert len(text) < LONGEST
    assert " more had no room here." in text


def test_json_has_all_of_it() -> None:
    content: dict[str, Any] = json.loads(render("json", repeated()))

    assert (content["outcome"], content["exit_status"]) == ("regressed", 1)
    step = content["quantities"][0]
    assert (step["name"], step["base"], step["head"]) == (
        "step",
        [10.0, 10.1, 9.9],
        [13.0, 13.1, 12.9],
    )
    assert step["change"]["value"] == pytest.approx(30.0)
    assert content["new"][0]["rule"] == "parallel-map"
