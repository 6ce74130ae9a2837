from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.gate.formats import text
from pipediag.gate.formats.github import MAX_ANNOTATIONS, render
from pipediag.gate.result import Check, CheckOutcome, GateResult
from tests.gate.formats.checks import make_check, make_result


def annotation_lines(*checks: Check) -> list[str]:
    text = render([GateResult(label="train.py", checks=checks)])
    return [line for line in text.splitlines() if line.startswith("::")]


@pytest.mark.parametrize(
    ("outcome", "command"),
    [("fail", "::error"), ("warn", "::warning"), ("inconclusive", "::warning")],
)
def test_the_outcome_picks_the_command(outcome: CheckOutcome, command: str) -> None:
    assert annotation_lines(make_check(outcome)) == [
        f"{command} file=train.py,line=12,title=pipediag missing-cache::Read again each epoch."
    ]


def test_what_passed_is_not_annotated() -> None:
    assert annotation_lines(make_check("pass")) == []


def test_the_message_keeps_to_one_line() -> None:
    (line,) = annotation_lines(make_check(sentence="50 % of it,\r\nsee: below"))
    assert line.endswith("::50 %25 of it,%0D%0Asee: below")


def test_a_property_cannot_end_early() -> None:
    (line,) = annotation_lines(make_check(file="odd,name: 5%.py"))
    assert line.startswith("::error file=odd%2Cname%3A 5%25.py,line=12,")


def test_a_check_without_a_place() -> None:
    (line,) = annotation_lines(make_check(file=None, line=None))
    assert line == "::error title=pipediag missing-cache::Read again each epoch."


def test_paths_are_relative_to_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (line,) = annotation_lines(make_check(file=str(tmp_path / "src" / "train.py")))
    assert line.startswith("::error file=src/train.py,")


def test_no_more_than_github_shows_and_errors_first() -> None:
    checks = [make_check("warn")] * 8 + [make_check("fail")] * 5
    result = GateResult(label="train.py", checks=tuple(checks))
    lines = render([result]).splitlines()
    shown = [line for line in lines if line.startswith("::")]
    assert len(shown) == MAX_ANNOTATIONS
    assert [line.split()[0] for line in shown] == ["::error"] * 5 + ["::warning"] * 5
    assert "3 more without an annotation; all are listed below." in lines


def test_the_text_follows() -> None:
    results = [GateResult(label="train.py", checks=(make_check(),))]
    assert render(results).endswith(text.render(results))


def test_a_script_that_failed_is_an_error() -> None:
    result = GateResult(label="train.py", checks=(), script_failure="It was killed.")
    assert render([result]).startswith("::error title=pipediag::It was killed.\n")


def test_among_errors_the_order_is_that_of_the_checks() -> None:
    lines = annotation_lines(
        make_check(name="verdict"), make_check("warn", name="aged"), make_check(name="missing")
    )
    assert [line.partition("title=pipediag ")[2].partition(":")[0] for line in lines] == [
        "verdict",
        "missing",
        "aged",
    ]


def test_errors_of_a_later_session_come_before_warnings() -> None:
    """What comes late may be left out."""
    results = [
        GateResult(label="a", checks=(make_check("warn"),)),
        GateResult(label="b", checks=(make_check(name="verdict"), make_check(name="missing"))),
    ]
    lines = [line for line in render(results).splitlines() if line.startswith("::")]
    assert [line.rpartition("pipediag ")[2].partition(":")[0] for line in lines] == [
        "verdict",
        "missing",
        "missing-cache",
    ]


def test_of_failures_the_one_that_buys_most_comes_first() -> None:
    lines = annotation_lines(
        make_check(name="verdict"),
        make_check("warn", name="small-batch", speedup=9.0),
        make_check(name="missing-cache", speedup=1.2),
        make_check("inconclusive", name="retracing"),
        make_check(name="tf-data-defaults", speedup=2.0),
    )
    assert [line.partition("title=pipediag ")[2].partition(":")[0] for line in lines] == [
        "tf-data-defaults",
        "missing-cache",
        "verdict",
        "small-batch",
        "retracing",
    ]


def test_repeats_of_a_run_do_not_fill_the_ten_with_one_finding() -> None:
    results = [GateResult(label=at, checks=(make_check(sentence=f"{at} %."),)) for at in "abc"]
    assert render(results).count("::error") == 1


def test_what_two_scripts_have_in_common_is_said_of_both() -> None:
    check = make_check(name="verdict", file=None, line=None)
    results = [make_result(check, script=script) for script in ("a.py", "b.py")]
    assert render(results).count("::error") == 2
