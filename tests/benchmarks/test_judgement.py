"""Sessions made by hand against expectations made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.judgement import Outcome, failed, judge, markdown, totals
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from tests.factories import make_finding, make_loop, make_session, make_verdict
from tests.samples.expectation import Expectation, read_expectation

SCRIPT = """import keras

data = data.map(f)  # pipediag: culprit
model.fit(data)  # pipediag: loop
"""
HEAD = 'shows = "s"\norigin = "o"\nmeasured = "m"\n'
VERDICT = '[verdict]\nbottleneck = ["input"]\nline = "culprit"\n'
LOOP = '[loop]\nkind = ["keras"]\nline = "loop"\n'


@pytest.fixture
def expect(tmp_path: Path):
    def write(trials: str = "", where: str = "") -> Expectation:
        (tmp_path / "train.py").write_text(SCRIPT, encoding="utf-8")
        path = tmp_path / "train.expect.toml"
        path.write_text(HEAD + VERDICT + where + LOOP + trials, encoding="utf-8")
        return read_expectation(path)

    return write


def confirmed(rule: str) -> Finding:
    trial = Trial(state="confirmed", reason=None, speedup=2.0, ci95=(1.9, 2.1), blocks=8)
    return make_finding(rule=rule, trial=trial)


def session(*findings: Finding, bottleneck: str = "input", line: int = 3) -> Session:
    return make_session(
        verdict=make_verdict(bottleneck=bottleneck, file="train.py", line=line, op_id="map_0"),
        loops=[make_loop(file="train.py", line=4)],
        findings=list(findings),
    )


def test_all_right(expect) -> None:
    expected = expect('[trials]\nconfirmed = ["parallel-map"]\n')
    outcome = judge(expected, session(confirmed("parallel-map")), trials=True)
    assert outcome.misses == ()
    assert outcome.right_at_first_place
    assert (outcome.found_operation, outcome.found_line) == ("map", "3")
    assert outcome.tried == 1


def test_the_first_confirmed_finding_counts(expect) -> None:
    expected = expect('[trials]\nconfirmed = ["parallel-map"]\n')
    found = session(confirmed("missing-cache"), confirmed("parallel-map"))
    outcome = judge(expected, found, trials=True)
    assert outcome.confirmed_right is False
    assert not outcome.right_at_first_place
    assert outcome.misses == (
        "first confirmed is missing-cache, expected one of ('parallel-map',)",
    )


def test_without_trials_nothing_is_asked_to_be_confirmed(expect) -> None:
    expected = expect('[trials]\nconfirmed = ["parallel-map"]\n')
    outcome = judge(expected, session(make_finding()), trials=False)
    assert outcome.confirmed_right is None
    assert outcome.right_at_first_place
    assert outcome.misses == ()


def test_what_must_not_be_confirmed_is_false(expect) -> None:
    expected = expect('[trials]\nnot_confirmed = ["tf-data-defaults"]\n')
    found = session(confirmed("missing-cache"), confirmed("tf-data-defaults"))
    assert judge(expected, found, trials=True).false == ("tf-data-defaults",)


def test_where_nothing_may_be_confirmed_everything_is_false(expect) -> None:
    found = session(confirmed("missing-cache"), confirmed("small-batch"))
    outcome = judge(expect("[trials]\nnone = true\n"), found, trials=True)
    assert outcome.false == ("missing-cache", "small-batch")
    assert not outcome.right_at_first_place
    assert len(outcome.misses) == 2


def test_a_wrong_line_and_a_wrong_bottleneck_are_told_apart(expect) -> None:
    line = judge(expect(), session(line=4), trials=True)
    assert (line.verdict_right, line.line_right) == (True, False)
    bottleneck = judge(expect(), session(bottleneck="compute"), trials=True)
    assert (bottleneck.verdict_right, bottleneck.line_right) == (False, True)


def test_totals_count_what_could_be_right(expect) -> None:
    expected = expect('[trials]\nconfirmed = ["parallel-map"]\n')
    outcomes = [
        judge(expected, session(confirmed("parallel-map")), trials=True),
        judge(expected, session(), trials=True),
        failed(expected, "exit status 3"),
    ]
    sentences = totals(outcomes).sentences()
    assert sentences[0] == "Right at first place: 1 of 3 runs."
    assert sentences[1] == "False confirmations: 0 (1 edits were measured)."
    assert sentences[2] == (
        "Bottleneck right: 2 of 3; line right: 2 of 3; part of the run right: 0 of 0; first "
        "confirmed finding right: 1 of 3."
    )


def test_the_table_has_one_row_a_script_with_all_its_rounds(expect) -> None:
    expected = expect("[trials]\nnone = true\n")
    runs: list[Outcome] = [
        judge(expected, session(), trials=True),
        judge(expected, session(), trials=True),
        judge(expected, session(confirmed("small-batch"), bottleneck="compute"), trials=True),
    ]
    text = markdown(runs, "Example CPU, 2 cores")
    assert text.startswith("Example CPU, 2 cores\n")
    row = text.splitlines()[-1]
    assert row == (
        "| `train` | input, line 3 | input, line 3 (2); compute, line 3 (1) | map | none | "
        "- (2); small-batch (1) | small-batch | 2 of 3 |"
    )


def looked(where: str, line: int | None) -> Session:
    verdict = make_verdict(
        bottleneck="input",
        file="train.py",
        line=3,
        where=where,
        where_percent=60.0,
        where_file="train.py",
        where_line=line,
    )
    return make_session(verdict=verdict, loops=[make_loop(file="train.py", line=4)], findings=[])


@pytest.mark.parametrize(
    ("where", "line", "right"),
    [("epoch_start", 4, True), ("epoch_start", 3, False), ("steps", 4, False)],
)
def test_the_part_of_the_run_and_its_line_count_for_the_first_place(
    expect, where: str, line: int, right: bool
) -> None:
    expected = expect(where='where = "epoch_start"\nwhere_line = "loop"\n')
    outcome = judge(expected, looked(where, line), trials=True)
    assert outcome.where_right is right
    assert outcome.right_at_first_place is right
    assert (
        "part of the run right: " + ("1 of 1" if right else "0 of 1")
        in totals([outcome, judge(expect(), session(), trials=True)]).sentences()[2]
    )
    row = markdown([outcome], "CPU").splitlines()[-1]
    assert row.startswith(
        "| `train` | input, line 3; most of the run: epoch_start | input, line 3; most of the run: "
        f"{where} |"
    )


def test_a_run_without_a_session_has_named_no_part(expect) -> None:
    expected = expect(where='where = "epoch_start"\n')
    assert failed(expected, "exit status 3").where_right is False
    assert failed(expect(), "exit status 3").where_right is None
