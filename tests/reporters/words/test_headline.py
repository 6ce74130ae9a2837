from __future__ import annotations

from dataclasses import replace

from pipediag.reporters.words.headline import headline, spent
from pipediag.session.findings import LeftOut, Patch
from pipediag.session.ledger import RunGain
from pipediag.session.trials import Combined
from tests import factories
from tests.reporters import trial_sessions


def plain(text: object) -> str:
    return str(text).replace("\xa0", " ")


def test_the_combination_with_its_interval_and_its_changes() -> None:
    assert plain(headline(trial_sessions.everything_tried())) == (
        "Measured: 3.10x [2.90, 3.30] with 2 changes: 16 parallel calls on the map in line 12; "
        "batch(128) in line 13 (changes a hyper-parameter, so retune)"
    )


def test_a_change_that_the_patch_goes_without_is_named() -> None:
    left = LeftOut(edit=trial_sessions.BATCH.id, reason="The run does not gain.")
    patch = Patch(edits=[trial_sessions.PARALLEL.id], diff="", left_out=[left])
    line = headline(trial_sessions.everything_tried().model_copy(update={"patch": patch}))

    assert line is not None
    assert line.changes == (
        "16 parallel calls on the map in line 12",
        "batch(128) in line 13 (changes a hyper-parameter, so retune), not in the patch",
    )


def test_where_nothing_is_patched_no_patch_is_spoken_of() -> None:
    left = LeftOut(edit=trial_sessions.BATCH.id, reason="Only you know.")
    patch = Patch(left_out=[left])
    line = headline(trial_sessions.everything_tried().model_copy(update={"patch": patch}))

    assert "not in the patch" not in str(line)


def test_the_only_confirmed_change_needs_no_combination() -> None:
    assert plain(headline(trial_sessions.lost_child())) == (
        "Measured: 1.94x [1.88, 2.01] with 1 change: 16 parallel calls on the map in line 12"
    )


def test_changes_that_were_not_measured_together_have_no_number() -> None:
    session = trial_sessions.everything_tried().model_copy(update={"combined": None})
    line = headline(session)

    assert line is not None
    assert line.number is None
    assert str(line) == (
        "5 changes tried: 3 confirmed, 1 refuted, 1 inconclusive; not measured together."
    )


def test_a_combination_that_was_lost_names_its_changes() -> None:
    session = trial_sessions.everything_tried().model_copy(
        update={
            "combined": Combined(findings=[trial_sessions.PARALLEL.id], speedup=None, ci95=None),
            "combined_missing": "The time was used up.",
        }
    )

    assert str(headline(session)) == (
        "1 change confirmed one by one, not together (The time was used up): "
        "16 parallel calls on the map in line 12"
    )


def test_nothing_confirmed_is_said_without_a_number() -> None:
    findings = [factories.make_finding(edit=trial_sessions.PREFETCH, trial=trial_sessions.REFUTED)]

    line = headline(factories.make_session(findings=findings))

    assert str(line) == "1 change tried: 1 refuted."


def test_silence_where_there_was_nothing_to_try() -> None:
    assert headline(factories.make_session(trials_missing=None)) is None
    assert headline(factories.make_session(findings=[], trials_missing="No finding.")) is None


def test_time_spent_and_on_what() -> None:
    assert plain(spent(trial_sessions.pipeline_only())) == (
        "1 change tried on the pipeline alone, without training, in 52.4 s of the 60.0 s for a "
        "closer look and for trials"
    )
    assert spent(factories.make_session()) is None


def test_a_gain_of_steps_that_are_little_of_the_loop_is_not_called_the_loops() -> None:
    loop = factories.make_loop(time=factories.make_loop_time())
    session = trial_sessions.lost_child().model_copy(update={"loops": [loop]})
    assert plain(headline(session)).startswith(
        "Measured: 1.94x [1.88, 2.01] in the steps, which are 15 % of the loop, with 1 change"
    )


def test_a_gain_in_steps_of_an_evaluation_is_not_called_the_trainings() -> None:
    edit = replace(trial_sessions.PARALLEL, loop_id="loop-2")
    tried = trial_sessions.lost_child()
    findings = [
        one.model_copy(update={"edit": edit})
        if one.edit is not None and one.edit.id == edit.id
        else one
        for one in tried.findings
    ]

    assert "in the steps of the evaluation, with 1 change" in plain(
        headline(tried.model_copy(update={"findings": findings}))
    )


def test_what_comes_from_the_pipeline_alone_is_an_estimate() -> None:
    assert plain(headline(trial_sessions.pipeline_only())) == (
        "Estimated: 4.16x from the pipeline alone, without training, with 1 change: 16 parallel "
        "calls on the map in line 12"
    )


def test_findings_that_share_an_edit_are_one_change() -> None:
    first, other = (
        factories.make_finding(rule=rule, edit=edit, trial=trial_sessions.REFUTED)
        for rule, edit in (
            ("tf-data-defaults", trial_sessions.PREFETCH),
            ("another", replace(trial_sessions.PREFETCH, id="another")),
        )
    )
    session = factories.make_session(
        findings=[first, other], trials=trial_sessions.pipeline_only().trials
    )

    assert plain(spent(session)).startswith("1 change tried ")
    assert str(headline(session)) == "1 change tried: 1 refuted."


def test_the_only_change_may_be_that_of_several_findings() -> None:
    session = trial_sessions.lost_child()
    again = [finding for finding in session.findings if finding.trial.state == "confirmed"]
    twice = session.model_copy(update={"findings": [*session.findings, *again]})

    assert str(headline(twice)) == str(headline(session))


def test_what_right_results_cost_is_no_refutation() -> None:
    wrong = factories.make_finding(
        edit=trial_sessions.CACHE, trial=trial_sessions.REFUTED, subject="correctness"
    )

    assert str(headline(factories.make_session(findings=[wrong]))) == (
        "1 change tried: 1 measured for its price."
    )


def test_where_steps_are_little_of_the_run_its_gain_is_the_number() -> None:
    gain = RunGain(
        speedup=1.14, ci95=(1.1, 1.2), before_s=20.0, after_s=17.5, basis="measured", scope="run"
    )
    session = trial_sessions.everything_tried()
    assert session.combined is not None
    combined = session.combined.model_copy(update={"for_run": gain})
    said = {
        share: str(
            headline(
                session.model_copy(
                    update={
                        "combined": combined,
                        "run": factories.make_run(
                            parts=[factories.make_part("steps", share / 5.0)]
                        ),
                    }
                )
            )
        ).replace("\u00a0", " ")
        for share in (69.0, 70.0)
    }

    assert said[69.0].startswith(
        "Measured: 1.14x [1.10, 1.20] for the run (20.0 s to 17.5 s) with 2 changes, "
    )
    assert "in the steps" in said[69.0]
    assert not said[70.0].startswith("Measured: 1.14x")
    assert "1.14x [1.10, 1.20] for the run (20.0 s to 17.5 s)" in said[70.0]
