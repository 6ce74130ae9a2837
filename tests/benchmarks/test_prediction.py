"""Errors of predictions, on findings made by hand."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from benchmarks.prediction import TriedEdit, main, markdown, summary, tried
from pipediag.session.edits import Edit
from pipediag.session.store import save_session
from pipediag.session.trials import Trial
from tests.factories import make_finding, make_session


def finding(edit: str, predicted: float | None, measured: float | None, state: str = "confirmed"):
    trial = Trial(state=state, reason=None, speedup=measured, ci95=(1.0, 3.0))  # type: ignore[arg-type]
    return make_finding(
        rule=edit,
        edit=Edit(id=edit, label=edit, changes=()),
        predicted_speedup=predicted,
        trial=trial,
    )


def edit(predicted: float | None, measured: float, state: str = "confirmed") -> TriedEdit:
    return TriedEdit("s", "e", state, predicted, measured, (1.0, 3.0))


def test_only_measured_edits_count_and_each_once() -> None:
    session = make_session(
        findings=[
            finding("a", 2.0, 1.6),
            finding("a", 9.0, 1.6),
            finding("b", 2.0, None, "not_tried"),
            finding("c", None, 0.9, "refuted"),
        ]
    )
    found = tried(session)
    assert [(e.edit, e.predicted, e.measured) for e in found] == [("a", 2.0, 1.6), ("c", None, 0.9)]
    assert found[0].script == "train"
    assert found[0].error == pytest.approx(0.25)
    assert found[1].error is None


def test_signs() -> None:
    assert edit(1.0, 1.5).wrong_sign
    assert not edit(1.2, 1.5).wrong_sign
    assert not edit(None, 1.5).wrong_sign
    assert not edit(1.0, 1.0, "refuted").wrong_sign
    assert edit(1.5, 0.9, "refuted").promised
    assert not edit(1.0, 0.9, "refuted").promised


def test_summary_has_the_median_and_the_quantiles() -> None:
    edits = [edit(1.0, 2.0), edit(2.0, 2.0), edit(3.0, 2.0, "refuted"), edit(None, 1.5)]
    sentences = summary(edits)
    assert sentences[0] == (
        "4 edits were measured: 3 confirmed, 1 refuted, 0 inconclusive; 1 had no prediction."
    )
    assert sentences[1].startswith("Error |predicted / measured - 1|: median 0.50 (25 %: 0.25,")
    assert sentences[2].startswith("Wrong signs: 1 of 2 confirmed edits")
    assert sentences[3] == "Promised and refuted: 1 of 1 refuted edits."
    assert sentences[4] == (
        "Inside the measured interval: 3 of 3 predictions; half of an interval's width is 0.50 of "
        "what was measured (median)."
    )
    assert markdown(edits, "Example CPU").splitlines()[-1] == (
        "| `s` | `e` | - | 1.50x [1.00, 3.00] | confirmed | - |"
    )


def test_kept_sessions_are_read_from_their_directories(tmp_path: Path) -> None:
    (tmp_path / "train" / "round1").mkdir(parents=True)
    save_session(make_session(findings=[finding("a", 2.0, 1.6)]), tmp_path / "train" / "round1")
    done = CliRunner().invoke(main, ["--sessions", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert "train: `a` predicted 2.00x, measured 1.60x [1.00, 3.00], confirmed 0.25" in done.output


def test_sessions_without_a_trial_are_no_result(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    save_session(make_session(findings=[]), tmp_path / "train")
    done = CliRunner().invoke(main, ["--sessions", str(tmp_path)])
    assert done.exit_code == 1
    assert "no session holds an edit that was measured" in done.output


def test_how_many_measurements_lie_where_they_were_likely_to() -> None:
    within, beyond, unpredicted = edit(2.0, 1.5), edit(2.0, 3.4), edit(None, 1.5)

    assert (within.likely, beyond.likely, unpredicted.likely) == (True, False, None)
    assert summary([within, beyond, unpredicted])[-1] == (
        "Inside the predicted range: 1 of 2 measurements."
    )
