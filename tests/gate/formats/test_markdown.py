from __future__ import annotations

from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate
from pipediag.gate.formats.markdown import LONGEST, render
from pipediag.gate.result import Check, GateResult
from tests.factories import make_session
from tests.gate.formats.checks import make_check, make_result


def test_a_limit_fills_every_column() -> None:
    config = GateConfig(max_input_wait_percent=20)
    text = render([evaluate(make_session(findings=[]), config)])
    assert "### train.py: failed" in text
    assert (
        "| fail | max-input-wait-percent | 70.0 % | 69.0 to 71.0 % | 20 % | train.py:12 | " in text
    )
    assert text.endswith("Gate: failed (exit status 1).\n")


def test_text_can_neither_break_a_row_nor_add_markup() -> None:
    check = Check(
        name="missing-cache",
        outcome="fail",
        severity="error",
        sentence="a | b\nc <img src=x> `d`",
        file="train.py",
    )
    text = render([GateResult(label="a_b.py", checks=(check,))])
    (row,) = [line for line in text.splitlines() if line.startswith("| fail")]
    assert row == (
        "| fail | missing-cache |  |  |  | train.py | a \\| b c \\<img src=x\\> \\`d\\` |"
    )
    assert "### a\\_b.py: failed" in text


def test_a_script_that_failed() -> None:
    result = GateResult(label="train.py", checks=(), script_failure="It was killed.")
    text = render([result])
    assert "### train.py: not judged\n\nIt was killed.\n" in text


def test_each_session_has_a_heading_under_that_of_the_tool() -> None:
    results = [
        GateResult(label=label, checks=(), script_failure="It was killed.") for label in "ab"
    ]
    assert render(results) == (
        "## pipediag\n\n"
        "### a: not judged\n\nIt was killed.\n\n"
        "### b: not judged\n\nIt was killed.\n\n"
        "Gate: not judged (exit status 3): 2 of 2 sessions.\n"
    )


def test_what_is_not_known_of_a_check_is_an_empty_cell() -> None:
    check = Check("missing-cache", "warn", "warn", "Read again each epoch.")
    text = render([GateResult(label="train.py", checks=(check,))])
    assert "| warn | missing-cache |  |  |  |  | Read again each epoch. |\n" in text


def test_a_comment_has_room_for_it_and_the_worst_are_in_it() -> None:
    """GitHub refuses a comment of more than 65,536 characters, and says why to nobody."""
    checks = [make_check("pass", sentence="x " * 2_000) for _ in range(40)]
    results = [make_result(*checks, make_check(name=f"rule-{at}"), label="b" * 90) for at in "abc"]
    text = render(results)

    assert len(text) < LONGEST + 500
    assert all(f"| fail | rule-{at} |" in text for at in "abc")
    shown = text.count("\n| pass |")
    assert 0 < shown < 40
    assert f"{120 - shown} more had no room here; `--format text` has them all.\n" in text
    assert text.endswith("Gate: failed (exit status 1): 3 of 3 sessions.\n")


def test_a_thousand_sessions_have_an_end_too() -> None:
    results = [make_result(make_check(), label=f"{at}" * 50) for at in range(1_000)]
    assert len(render(results)) < LONGEST + 500
