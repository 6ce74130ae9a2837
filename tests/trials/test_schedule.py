from __future__ import annotations

import pytest

from pipediag.session.findings import Finding
from pipediag.trials.contest import MOST_AT_ONCE
from pipediag.trials.events import Decided, TrialEvent, Trying
from pipediag.trials.statistics import FEWEST_ROUNDS, LOOKS, MOST_ROUNDS
from pipediag.vocabulary import BASE
from tests.trials.bench import MODEL_CHANGE, FakeExecutor, make_edit, make_finding, try_edits


def test_what_each_edit_bought_is_said() -> None:
    executor = FakeExecutor({"fast": 2.0, "idle": 1.0, "slow": 0.7})
    outcome = try_edits(executor, [make_finding(one) for one in ("fast", "idle", "slow")])
    states = {edit: trial.state for edit, trial in outcome.trials.items()}
    assert states == {"fast": "confirmed", "idle": "refuted", "slow": "refuted"}
    fast = outcome.trials["fast"]
    assert fast.speedup == pytest.approx(2.0, rel=0.03)
    assert fast.ci95 is not None
    assert fast.ci95[0] < 2.0 < fast.ci95[1]
    assert (fast.blocks, fast.consumer, fast.reason) == (LOOKS[0], "training", None)
    assert outcome.run.loop_id == "loop_0"
    assert outcome.run.base_step_ms == pytest.approx(2.0, rel=0.05)
    assert outcome.run.used_s == pytest.approx(executor.clock.now - 1000.0, abs=0.01)


def test_an_arm_alone_is_enough_for_the_combination() -> None:
    outcome = try_edits(FakeExecutor({"a": 2.0}), [make_finding("a"), make_finding("b")])
    assert outcome.combined is not None
    assert outcome.combined.findings == ["a"]
    assert outcome.combined.speedup == outcome.trials["a"].speedup
    assert outcome.combined.ci95 == outcome.trials["a"].ci95


def test_nothing_confirmed_is_nothing_combined() -> None:
    outcome = try_edits(FakeExecutor(), [make_finding("a")])
    assert outcome.combined is None
    assert outcome.combined_missing == "No edit was confirmed."


def test_each_round_holds_base_and_each_live_edit_once_in_changing_order() -> None:
    executor = FakeExecutor()
    outcome = try_edits(executor, [make_finding(one) for one in "abc"])
    rounds: dict[int, list[str]] = {}
    for block in outcome.run.blocks:
        rounds.setdefault(block.round, []).append(block.arm)
    assert rounds.pop(0) == [BASE]
    first_five = [rounds[number] for number in range(1, 6)]
    assert all(sorted(arms) == ["a", "b", BASE, "c"] for arms in first_five)
    assert len({tuple(arms) for arms in first_five}) > 1


def test_no_more_than_a_few_are_alive_at_once_and_the_next_enter_as_others_leave() -> None:
    names = "abcdef"
    outcome = try_edits(
        FakeExecutor(dict.fromkeys(names, 0.5)), [make_finding(one) for one in names], 300.0
    )
    live: dict[int, set[str]] = {}
    for block in outcome.run.blocks:
        live.setdefault(block.round, set()).add(block.arm)
    assert max(len(arms - {BASE}) for arms in live.values()) == MOST_AT_ONCE
    assert {trial.state for trial in outcome.trials.values()} == {"refuted"}
    assert len(outcome.trials) == len(names)


def test_drift_of_the_machine_is_no_speedup() -> None:
    executor = FakeExecutor({"a": 1.0}, drift=lambda now: 1.0 + (now - 1000.0) / 20.0)
    outcome = try_edits(executor, [make_finding("a")])
    assert outcome.trials["a"].state != "confirmed"
    assert outcome.trials["a"].speedup == pytest.approx(1.0, abs=0.05)


def test_an_edit_that_cannot_be_built_says_why_and_the_rest_goes_on() -> None:
    executor = FakeExecutor({"b": 2.0}, refuse_prepare={"a": "Its function reads a lookup table."})
    outcome = try_edits(executor, [make_finding("a", 3.0), make_finding("b")])
    assert outcome.trials["a"].state == "not_tried"
    assert outcome.trials["a"].reason == "Its function reads a lookup table."
    assert outcome.trials["b"].state == "confirmed"


def test_an_edit_that_fails_on_the_way_is_not_judged() -> None:
    executor = FakeExecutor({"a": 3.0, "b": 2.0}, refuse_block={"a": (4, "It raised OutOfRange.")})
    outcome = try_edits(executor, [make_finding("a", 3.0), make_finding("b")])
    assert outcome.trials["a"].state == "not_tried"
    assert outcome.trials["a"].reason == "It raised OutOfRange."
    assert outcome.trials["b"].state == "confirmed"


def test_a_base_that_cannot_be_replayed_leaves_nothing_to_compare_with() -> None:
    executor = FakeExecutor(refuse_prepare={BASE: "The generator can run only once."})
    outcome = try_edits(executor, [make_finding("a"), make_finding("b")])
    said = "The pipeline as written can't be run for a trial: The generator can run only once."
    assert {trial.reason for trial in outcome.trials.values()} == {said}
    assert outcome.run.notes == [said]
    assert outcome.pipeline_alone_missing == said
    assert outcome.run.base_step_ms is None


def test_a_base_that_fails_on_the_way_keeps_what_was_measured() -> None:
    executor = FakeExecutor({"a": 2.0}, refuse_block={BASE: (5, "The data ended.")})
    outcome = try_edits(executor, [make_finding("a")])
    assert (outcome.trials["a"].state, outcome.trials["a"].blocks) == ("confirmed", 3)


def test_a_lost_process_keeps_what_was_measured() -> None:
    executor = FakeExecutor({"a": 2.0, "b": 2.0}, lose_block={"b": 4})
    outcome = try_edits(executor, [make_finding("a", 3.0), make_finding("b"), make_finding("c")])
    said = "The trials ended while trying try b: It was killed by the kernel."
    assert (outcome.trials["a"].state, outcome.trials["a"].blocks) == ("confirmed", 3)
    assert (outcome.trials["b"].state, outcome.trials["b"].reason) == ("not_tried", said)
    assert outcome.run.notes == [said]
    assert outcome.combined is not None
    assert outcome.combined.findings == ["a"]


def test_a_process_lost_early_leaves_nothing_to_judge() -> None:
    executor = FakeExecutor({"a": 2.0}, lose_prepare={"b"})
    outcome = try_edits(executor, [make_finding("a", 3.0), make_finding("b"), make_finding("c")])
    said = "The trials ended while trying try b: It was killed by the kernel."
    assert {trial.reason for trial in outcome.trials.values()} == {said}
    assert {trial.state for trial in outcome.trials.values()} == {"not_tried"}
    assert sorted(outcome.trials) == ["a", "b", "c"]


def test_two_confirmed_before_the_process_is_lost_are_not_combined_but_kept() -> None:
    executor = FakeExecutor({"a": 3.0, "b": 2.0, "c": 1.03}, lose_block={"c": 6})
    outcome = try_edits(
        executor, [make_finding("a", 3.0), make_finding("b"), make_finding("c", 1.1)]
    )
    said = "The trials ended while trying try c: It was killed by the kernel."
    assert outcome.combined is not None
    assert outcome.combined.findings == ["a"]
    assert [(one.edit, one.reason) for one in outcome.combined.dropped] == [("b", said)]


def test_the_budget_holds() -> None:
    for budget_s in (4.0, 10.0, 25.0, 60.0):
        names = "abcdefgh"
        speeds = {name: 1.0 + 0.3 * number for number, name in enumerate(names)}
        executor = FakeExecutor(speeds)
        outcome = try_edits(executor, [make_finding(one) for one in names], budget_s)
        # The last prepare is not foreseen.
        assert outcome.run.used_s <= budget_s + executor.prepare_s
        assert sorted(outcome.trials) == list(names)


def test_the_budget_counts_from_when_the_loop_began_to_wait() -> None:
    executor = FakeExecutor({"a": 2.0, "b": 1.5})
    waiting_s = executor.clock.now - 6.0
    outcome = try_edits(executor, [make_finding("a"), make_finding("b")], 10.0, began_s=waiting_s)
    assert 6.0 < outcome.run.used_s <= 10.0 + executor.prepare_s
    assert outcome.run.budget_s == 10.0


def test_what_stays_open_gets_longer_blocks_in_the_time_that_is_left() -> None:
    """Its speed lies where an interval keeps holding the limit."""
    executor = FakeExecutor({"a": 1.03}, noise=0.05)
    outcome = try_edits(executor, [make_finding("a")], 40.0)
    lengths = {block.round: block.duration_ms for block in outcome.run.blocks}
    assert max(lengths[number] for number in range(LOOKS[0] + 1)) < 500
    assert max(lengths.values()) > 1000
    assert outcome.run.used_s < 40.0


def test_while_others_wait_blocks_stay_short() -> None:
    names = "abcdefgh"
    executor = FakeExecutor(dict.fromkeys(names, 1.03), noise=0.05)
    outcome = try_edits(executor, [make_finding(one) for one in names], 30.0)
    assert max(block.duration_ms for block in outcome.run.blocks) < 500


def test_what_does_not_fit_keeps_its_prediction_and_says_so() -> None:
    executor = FakeExecutor({"a": 2.0})
    outcome = try_edits(executor, [make_finding("a", 3.0), make_finding("b", 2.0)], 6.0)
    assert outcome.trials["a"].state == "confirmed"
    reason = outcome.trials["b"].reason
    assert reason is not None
    assert reason.startswith("No time left: the budget of 6 s has ")


def test_long_steps_are_judged_after_fewer_rounds() -> None:
    executor = FakeExecutor({"a": 2.0}, step_ms=500.0, warmup_s=1.0)
    outcome = try_edits(executor, [make_finding("a"), make_finding("b", 1.5)], 30.0)
    a = outcome.trials["a"]
    assert a.state == "confirmed"
    assert a.blocks is not None
    assert FEWEST_ROUNDS <= a.blocks < LOOKS[0]
    assert outcome.trials["b"].state == "not_tried"


def test_an_edit_that_is_far_too_slow_does_not_cost_the_others_theirs() -> None:
    executor = FakeExecutor({"stuck": 0.0005, "good": 2.0})
    outcome = try_edits(executor, [make_finding("stuck", 3.0), make_finding("good")], 60.0)
    assert outcome.trials["good"].state == "confirmed"
    stuck = outcome.trials["stuck"]
    assert stuck.state in ("inconclusive", "refuted")


def test_what_stays_open_is_given_up_after_the_last_round() -> None:
    executor = FakeExecutor({"a": 1.03}, noise=0.08, seed=1)
    outcome = try_edits(executor, [make_finding("a")], 300.0)
    a = outcome.trials["a"]
    assert (a.state, a.blocks) == ("inconclusive", MOST_ROUNDS)
    assert a.reason == "After 15 rounds the interval still holds 1.03."


def test_caveats_of_the_edit_and_of_what_was_built_are_kept() -> None:
    executor = FakeExecutor({"a": 2.0}, left_out={"a": ["Its shuffle is filled beforehand."]})
    edit = make_edit("a", caveat="Measured once the cache is filled.")
    outcome = try_edits(executor, [make_finding(edit)])
    assert outcome.trials["a"].caveats == [
        "Measured once the cache is filled.",
        "Its shuffle is filled beforehand.",
    ]


def test_what_base_leaves_out_is_a_note() -> None:
    executor = FakeExecutor(left_out={BASE: ["Callbacks are left out."]})
    assert try_edits(executor, [make_finding("a")]).run.notes == ["Callbacks are left out."]


def test_findings_with_the_same_changes_share_a_trial() -> None:
    first = make_edit("first")
    twin = make_edit("twin", changes=first.changes)
    executor = FakeExecutor({"first": 2.0})
    outcome = try_edits(executor, [make_finding(first, 3.0), make_finding(twin)])
    assert outcome.trials["twin"] == outcome.trials["first"]
    assert outcome.trials["twin"].state == "confirmed"


def test_events_name_what_runs_and_tell_each_decision_when_it_falls() -> None:
    told: list[TrialEvent] = []
    executor = FakeExecutor({"a": 2.0, "b": 1.01})
    outcome = try_edits(executor, [make_finding("a", 3.0), make_finding("b")], on_event=told.append)
    decided = [event for event in told if isinstance(event, Decided)]
    assert [event.edit for event in decided] == ["a", "b"]
    assert decided[0].state == "confirmed"
    assert decided[0].label == "try a"
    assert decided[0].speedup == outcome.trials["a"].speedup
    assert decided[0].ci95 == outcome.trials["a"].ci95
    trials = [event for event in told if isinstance(event, Trying)]
    assert {event.label for event in trials} == {"the pipeline as written", "try a", "try b"}
    left = [event.left_s for event in trials]
    assert left == sorted(left, reverse=True)
    assert left[0] == 60.0
    # The first decision is told while the other edit still runs.
    assert told.index(decided[0]) < max(
        number for number, event in enumerate(told) if event.label == "try b"
    )


def test_the_pipeline_is_pulled_alone_after_the_first_decision() -> None:
    executor = FakeExecutor({"a": 2.0}, pull_step_ms=0.8)
    alone = try_edits(executor, [make_finding("a")]).pipeline_alone
    assert alone is not None
    assert alone.step_ms == pytest.approx(0.8, rel=0.05)
    assert alone.ci95_ms is not None
    assert alone.ci95_ms[0] <= alone.step_ms <= alone.ci95_ms[1]
    assert alone.blocks == executor.count("pull", BASE) == 5


def test_without_time_the_pipeline_is_not_pulled_alone() -> None:
    outcome = try_edits(FakeExecutor({"a": 2.0}), [make_finding("a")], 5.0)
    assert outcome.pipeline_alone is None
    assert outcome.pipeline_alone_missing == "No time was left for it."


def test_without_an_edit_nothing_is_started() -> None:
    executor = FakeExecutor()
    outcome = try_edits(executor, [make_finding("a", effect="not safe here")])
    assert executor.calls == []
    assert outcome.trials["a"].reason is not None
    assert outcome.trials["a"].reason.startswith("It is not safe here")
    assert outcome.combined_missing == "There was no edit to try."


def test_a_loop_that_cannot_be_driven_is_judged_by_its_pipeline_and_consumer() -> None:
    executor = FakeExecutor({"a": 4.0}, pull_step_ms=8.0)
    outcome = try_edits(executor, [make_finding("a")], consumer_ms=4.0)
    a = outcome.trials["a"]
    assert a.consumer == "pipeline alone"
    # Batches come every 2 ms, but the rest of the step still takes 4.
    assert a.speedup == pytest.approx(2.0, rel=0.05)
    assert a.basis == "pipeline"
    assert a.pipeline_speedup == pytest.approx(4.0, rel=0.05)
    assert a.pipeline_ci95 is not None
    assert outcome.combined is not None
    assert (outcome.combined.basis, outcome.combined.pipeline_speedup) == (
        "pipeline",
        a.pipeline_speedup,
    )
    assert "the 4.0 ms that the rest of the step took" in a.caveats[0]
    assert executor.count("block", BASE) == 0
    assert outcome.run.consumer == "pipeline alone"
    assert outcome.run.base_step_ms == pytest.approx(8.0, rel=0.05)
    assert outcome.pipeline_alone is not None
    assert outcome.pipeline_alone.step_ms == pytest.approx(8.0, rel=0.05)


def test_a_consumer_that_is_slower_than_both_makes_them_equal() -> None:
    executor = FakeExecutor({"a": 4.0}, pull_step_ms=2.0)
    a = try_edits(executor, [make_finding("a")], consumer_ms=10.0).trials["a"]
    assert (a.state, a.speedup, a.ci95) == ("refuted", 1.0, (1.0, 1.0))
    assert a.pipeline_speedup == pytest.approx(4.0, rel=0.05)


def test_what_steps_were_measured_on_is_no_estimate() -> None:
    a = try_edits(FakeExecutor({"a": 2.0}), [make_finding("a")]).trials["a"]
    assert (a.basis, a.pipeline_speedup, a.pipeline_ci95) == ("step", None, None)


def test_where_the_rest_of_the_step_is_not_known_no_time_is_made_up_for_it() -> None:
    executor = FakeExecutor({"a": 4.0}, pull_step_ms=8.0)
    a = try_edits(executor, [make_finding("a")], consumer_ms=0.0).trials["a"]
    assert a.caveats[0].endswith("what the rest of a step takes is not known.")


def test_what_the_pipeline_alone_cannot_show_is_not_tried() -> None:
    executor = FakeExecutor(pull_step_ms=8.0)
    outcome = try_edits(
        executor,
        [
            make_finding(make_edit("model", changes=MODEL_CHANGE)),
            make_finding("batch", effect="changes a hyper-parameter"),
        ],
        consumer_ms=4.0,
    )
    assert {trial.state for trial in outcome.trials.values()} == {"not_tried"}
    assert executor.calls == []


def test_blocks_are_on_record() -> None:
    outcome = try_edits(FakeExecutor({"a": 2.0}), [make_finding("a")])
    first = outcome.run.blocks[0]
    assert (first.arm, first.round) == (BASE, 0)
    assert first.duration_ms == pytest.approx(400.0, rel=0.02)
    assert first.examples_per_s == pytest.approx(first.batches * 32 / first.duration_ms * 1e3)


def test_the_same_seed_runs_the_same_rounds() -> None:
    findings = [make_finding(one) for one in "ab"]
    assert try_edits(FakeExecutor(), findings, seed=1) == try_edits(
        FakeExecutor(), findings, seed=1
    )


def test_the_time_to_build_an_arm_counts_before_it_is_built() -> None:
    """Filling the caches of the base took 20 s, and another arm's would take as long."""
    slow = FakeExecutor({"a": 2.0}, prepare_s=20.0)
    outcome = try_edits(slow, [make_finding("a")], budget_s=30.0)
    assert slow.count("prepare", "a") == 0
    assert "to build it and 3 rounds take" in str(outcome.trials["a"].reason)
    assert outcome.run.used_s < 30.0
    quick = FakeExecutor({"a": 2.0}, prepare_s=0.5)
    assert try_edits(quick, [make_finding("a")], budget_s=30.0).trials["a"].state == "confirmed"


def test_each_block_says_when_its_steps_began() -> None:
    outcome = try_edits(FakeExecutor({"a": 2.0}), [make_finding("a")])

    blocks = outcome.run.blocks
    begun = [block.since_began_ms for block in blocks]
    assert None not in begun
    ends = [start + block.duration_ms for start, block in zip(begun, blocks, strict=True) if start]
    assert all(end <= start for end, start in zip(ends, begun[1:], strict=False) if start)
    assert ends[-1] <= outcome.run.used_s * 1e3 + 0.01


def test_where_nothing_is_confirmed_further_edits_have_the_time_that_is_left() -> None:
    executor = FakeExecutor({"b": 2.0})
    outcome = try_edits(
        executor, [make_finding("a")], further=[make_finding("b"), make_finding("c")]
    )
    states = {edit: trial.state for edit, trial in outcome.trials.items()}

    assert states == {"a": "refuted", "b": "confirmed", "c": "refuted"}
    assert [one.rule for one in outcome.further] == ["b", "c"]
    assert outcome.combined is not None
    assert outcome.combined.findings == ["b"]


def test_where_one_is_confirmed_nothing_further_is_tried() -> None:
    outcome = try_edits(FakeExecutor({"a": 2.0}), [make_finding("a")], further=[make_finding("b")])

    assert list(outcome.trials) == ["a"]
    assert outcome.further == ()


def test_further_edits_are_tried_where_the_first_may_not_be() -> None:
    barred = make_finding("a", effect="not safe here")
    outcome = try_edits(FakeExecutor({"b": 2.0}), [barred], further=[make_finding("b")])

    assert outcome.trials["a"].state == "not_tried"
    assert outcome.trials["b"].state == "confirmed"


def test_an_edit_that_stays_open_leaves_time_to_the_further_ones() -> None:
    executor = FakeExecutor({"a": 1.05, "b": 2.0}, noise=0.2)
    outcome = try_edits(executor, [make_finding("a")], 40.0, further=[make_finding("b")])

    assert outcome.trials["a"].state == "inconclusive"
    assert outcome.trials["b"].state == "confirmed"


def test_a_budget_that_is_spent_on_the_first_leaves_the_further_ones_untried() -> None:
    executor = FakeExecutor()

    def spend(event: TrialEvent) -> None:
        if isinstance(event, Decided):
            executor.clock.now += 60.0

    outcome = try_edits(executor, [make_finding("a")], further=[make_finding("b")], on_event=spend)

    assert outcome.trials["a"].state == "refuted"
    assert outcome.trials["b"].state == "not_tried"
    assert str(outcome.trials["b"].reason).startswith("No time left")


def in_place_of_a() -> Finding:
    return make_finding(make_edit("b", instead_of="a"))


def test_an_alternative_is_tried_where_the_other_is_not_confirmed() -> None:
    executor = FakeExecutor({"a": 0.9, "b": 2.0, "c": 2.0})
    outcome = try_edits(executor, [make_finding("a"), in_place_of_a(), make_finding("c")])
    states = {edit: trial.state for edit, trial in outcome.trials.items()}

    assert states == {"a": "refuted", "b": "confirmed", "c": "confirmed"}
    first_of_b = min(block.round for block in outcome.run.blocks if block.arm == "b")
    assert first_of_b > max(block.round for block in outcome.run.blocks if block.arm == "a")


def test_an_alternative_to_what_is_confirmed_is_not_tried() -> None:
    executor = FakeExecutor({"a": 2.0, "b": 3.0})
    outcome = try_edits(executor, [make_finding("a"), in_place_of_a()])

    assert outcome.trials["b"].state == "not_tried"
    assert outcome.trials["b"].reason == "Another change against the same is confirmed: try a."
    assert outcome.combined is not None
    assert outcome.combined.findings == ["a"]


def test_an_alternative_is_told_what_ended_the_trials() -> None:
    executor = FakeExecutor({"a": 2.0}, lose_prepare={"a"})
    outcome = try_edits(executor, [make_finding("a"), in_place_of_a()])

    assert outcome.trials["b"].reason == outcome.trials["a"].reason
