"""The pipeline as written, pulled without its consumer in the time that edits leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from pipediag.estimates import FEWEST_ROUNDS, LOOKS
from pipediag.session.edits import SetModel
from pipediag.session.messages import BlockRun, RunBlock
from pipediag.trials import ScriptFinishedError
from pipediag.trials.bench import TakenBy
from pipediag.trials.candidates import RETUNE
from pipediag.trials.contest import MOST_AT_ONCE
from pipediag.vocabulary import BASE, FindingStatus
from tests.trials.bench import MODEL_CHANGE, FakeExecutor, make_edit, make_finding, try_edits


def test_what_each_edit_bought_is_said() -> None:
    executor = FakeExecutor({"fast": 2.0, "idle": 1.0, "slow": 0.7})
    outcome = try_edits(executor, ("fast", "idle", "slow"))
    states = {edit: trial.state for edit, trial in outcome.trials.items()}
    assert states == {"fast": "confirmed", "idle": "refuted", "slow": "refuted"}
    fast = outcome.trials["fast"]
    assert fast.speedup == pytest.approx(2.0, rel=0.03)
    assert fast.ci95[0] < 2.0 < fast.ci95[1]
    assert (fast.blocks, fast.consumer, fast.reason) == (LOOKS[0], "training", None)
    assert outcome.run.loop_id == "loop_0"
    assert outcome.run.used_s == pytest.approx(executor.clock.now - 1000.0, abs=0.01)


def test_each_round_holds_base_and_each_live_edit_once_in_changing_order() -> None:
    executor = FakeExecutor()
    outcome = try_edits(executor, "abc")
    rounds: dict[int, list[str]] = {}
    for block in outcome.run.blocks:
        rounds.setdefault(block.round, []).append(block.arm)
    assert rounds.pop(0) == [BASE]
    first_five = [rounds[number] for number in range(1, 6)]
    assert all(sorted(variants) == ["a", "b", BASE, "c"] for variants in first_five)
    assert len({tuple(variants) for variants in first_five}) > 1


def test_no_more_than_a_few_are_alive_at_once_and_the_next_enter_as_others_leave() -> None:
    names = "abcdef"
    outcome = try_edits(FakeExecutor(dict.fromkeys(names, 0.5)), names, 300.0)
    live: dict[int, set[str]] = {}
    for block in outcome.run.blocks:
        live.setdefault(block.round, set()).add(block.arm)
    assert max(len(variants - {BASE}) for variants in live.values()) == MOST_AT_ONCE
    assert {trial.state for trial in outcome.trials.values()} == {"refuted"}
    assert len(outcome.trials) == len(names)


def test_drift_of_the_machine_is_no_speedup() -> None:
    executor = FakeExecutor({"a": 1.0}, drift=lambda now: 1.0 + (now - 1000.0) / 20.0)
    outcome = try_edits(executor, "a")
    assert outcome.trials["a"].state != "confirmed"
    assert outcome.trials["a"].speedup == pytest.approx(1.0, abs=0.05)


@pytest.mark.parametrize(
    "refused", [{"refuse_prepare": {"a": "It raised."}}, {"refuse_block": {"a": (4, "It raised.")}}]
)
def test_an_edit_that_fails_says_why_and_the_rest_goes_on(refused: dict[str, Any]) -> None:
    outcome = try_edits(FakeExecutor({"a": 3.0, "b": 2.0}, **refused), "ab")
    assert (outcome.trials["a"].state, outcome.trials["a"].reason) == ("not_tried", "It raised.")
    assert outcome.trials["b"].state == "confirmed"


def test_a_base_that_cannot_be_replayed_leaves_nothing_to_compare_with() -> None:
    executor = FakeExecutor(refuse_prepare={BASE: "The generator can run only once."})
    outcome = try_edits(executor, "ab")
    said = "The pipeline as written can't be run for a trial: The generator can run only once."
    assert {trial.reason for trial in outcome.trials.values()} == {said}
    assert outcome.run.notes == [said]
    assert outcome.pipeline_alone_missing == said


def test_a_lost_process_keeps_what_was_measured() -> None:
    executor = FakeExecutor({"a": 2.0, "b": 2.0}, lose_block={"b": 4})
    outcome = try_edits(executor, "abc")
    said = "The trials ended while trying try b: It was killed by the kernel."
    assert (outcome.trials["a"].state, outcome.trials["a"].blocks) == ("confirmed", 3)
    assert (outcome.trials["b"].state, outcome.trials["b"].reason) == ("not_tried", said)
    assert outcome.run.notes == [said]
    assert outcome.combined.findings == ["a"]


def test_the_end_of_the_script_takes_no_measured_rounds_away() -> None:
    executor = FakeExecutor({"a": 4.0}, lose_block={"a": 4})
    executor.lost_by = ScriptFinishedError("the script finished.")
    trial = try_edits(executor, "a").trials["a"]
    assert (trial.state, trial.blocks) == ("confirmed", 3)


def test_the_budget_holds() -> None:
    for budget_s in (4.0, 10.0, 25.0, 60.0):
        names = "abcdefgh"
        speeds = {name: 1.0 + 0.3 * number for number, name in enumerate(names)}
        executor = FakeExecutor(speeds)
        outcome = try_edits(executor, names, budget_s)
        # The last prepare is not foreseen.
        assert outcome.run.used_s <= budget_s + executor.prepare_s
        assert sorted(outcome.trials) == list(names)


def test_what_stays_open_gets_longer_blocks_in_the_time_that_is_left() -> None:
    """Its speed lies where an interval keeps holding the limit."""
    executor = FakeExecutor({"a": 1.03}, noise=0.05)
    outcome = try_edits(executor, "a", 40.0)
    lengths = {block.round: block.duration_ms for block in outcome.run.blocks}
    assert max(lengths[number] for number in range(LOOKS[0] + 1)) < 500
    assert max(lengths.values()) > 1000
    assert outcome.run.used_s < 40.0


def test_long_steps_are_judged_after_fewer_rounds() -> None:
    executor = FakeExecutor({"a": 2.0}, step_ms=500.0, warmup_s=1.0)
    outcome = try_edits(executor, "ab", 30.0)
    a = outcome.trials["a"]
    assert a.state == "confirmed"
    assert FEWEST_ROUNDS <= a.blocks < LOOKS[0]
    assert outcome.trials["b"].state == "not_tried"


def test_findings_with_the_same_changes_share_a_trial() -> None:
    first = make_edit("first")
    twin = make_edit("twin", changes=first.changes)
    executor = FakeExecutor({"first": 2.0})
    outcome = try_edits(executor, [make_finding(first, 3.0), make_finding(twin)])
    assert outcome.trials["twin"] == outcome.trials["first"]
    assert outcome.trials["twin"].state == "confirmed"


def test_the_pipeline_is_pulled_alone_after_the_first_decision() -> None:
    executor = FakeExecutor({"a": 2.0}, pull_step_ms=0.8)
    alone = try_edits(executor, "a").pipeline_alone
    assert alone.step_ms == pytest.approx(0.8, rel=0.05)
    assert alone.ci95_ms[0] <= alone.step_ms <= alone.ci95_ms[1]
    assert alone.blocks == executor.count("pull", BASE) == 5


def test_without_an_edit_nothing_is_started() -> None:
    executor = FakeExecutor()
    outcome = try_edits(executor, [make_finding("a", effect="not safe here")])
    assert executor.calls == []
    assert outcome.trials["a"].reason.startswith("It is not safe here")
    assert outcome.combined_missing == "There was no edit to try."


def test_a_loop_that_cannot_be_driven_is_judged_by_its_pipeline_and_consumer() -> None:
    executor = FakeExecutor({"a": 4.0}, pull_step_ms=8.0)
    outcome = try_edits(executor, "a", taken_by=TakenBy("pipeline", consumer_ms=4.0))
    a = outcome.trials["a"]
    assert a.consumer == "pipeline alone"
    # Batches come every 2 ms, but the rest of the step still takes 4.
    assert a.speedup == pytest.approx(2.0, rel=0.05)
    assert a.basis == "pipeline"
    assert a.pipeline_speedup == pytest.approx(4.0, rel=0.05)
    assert a.pipeline_ci95 is not None
    assert (outcome.combined.basis, outcome.combined.pipeline_speedup) == (
        "pipeline",
        a.pipeline_speedup,
    )
    assert "the 4.0 ms that the rest of the step took" in a.caveats[0]
    assert executor.count("block", BASE) == 0
    assert outcome.run.consumer == "pipeline alone"
    assert outcome.pipeline_alone.step_ms == pytest.approx(8.0, rel=0.05)


def test_what_the_pipeline_alone_cannot_show_is_not_tried() -> None:
    executor = FakeExecutor(pull_step_ms=8.0)
    outcome = try_edits(
        executor,
        [
            make_finding(make_edit("model", changes=MODEL_CHANGE)),
            make_finding("batch", effect="changes a hyper-parameter"),
        ],
        taken_by=TakenBy("pipeline", consumer_ms=4.0),
    )
    assert {trial.state for trial in outcome.trials.values()} == {"not_tried"}
    assert executor.calls == []


def test_the_time_to_build_a_variant_counts_before_it_is_built() -> None:
    """Filling the caches of the base took 20 s, and another variant's would take as long."""
    slow = FakeExecutor({"a": 2.0}, prepare_s=20.0)
    outcome = try_edits(slow, "a", budget_s=30.0)
    assert slow.count("prepare", "a") == 0
    assert str(outcome.trials["a"].reason).startswith("No time left")
    assert outcome.run.used_s < 30.0
    quick = FakeExecutor({"a": 2.0}, prepare_s=0.5)
    assert try_edits(quick, "a", budget_s=30.0).trials["a"].state == "confirmed"


@pytest.mark.parametrize("confirmed", [False, True])
def test_an_alternative_is_tried_where_the_other_is_not_confirmed(confirmed: bool) -> None:
    executor = FakeExecutor({"a": 2.0 if confirmed else 0.9, "b": 3.0})
    outcome = try_edits(executor, ["a", make_edit("b", instead_of="a")])
    tried = outcome.trials["b"]
    assert tried.state == ("not_tried" if confirmed else "confirmed")
    assert str(tried.reason).endswith("is confirmed: try a.") is confirmed
    assert outcome.combined.findings == (["a"] if confirmed else ["b"])


@dataclass
class Stalling(FakeExecutor):
    """The machine holds a variant up for `stall_s` in its block of that number, counted from 1."""

    stalled: tuple[str, int] = ("", 0)
    stall_s: float = 1000.0

    def run(self, command: RunBlock) -> BlockRun:
        block = super().run(command)
        if (command.variant, self.count("block", command.variant)) == self.stalled:
            self.clock.now += self.stall_s
        return block


def test_after_too_few_rounds_it_stays_open() -> None:
    edit = make_edit("a", caveat="Measured once the cache is filled.")
    found = try_edits(Stalling({"a": 2.0}, stalled=("a", 2)), [edit]).trials["a"]
    assert (found.state, found.speedup, found.blocks) == ("inconclusive", None, 2)
    assert (found.consumer, found.caveats) == ("training", [edit.caveat])


def test_of_several_the_slowest_goes_first() -> None:
    """The rest may then still be judged in the time that is left."""
    executor = Stalling({"a": 2.0, "b": 2.0, "c": 2.0}, stalled=("b", 2), stall_s=30.0)
    outcome = try_edits(executor, "abc", 60.0)
    assert {edit: trial.state for edit, trial in outcome.trials.items()} == {
        "a": "confirmed",
        "b": "inconclusive",
        "c": "confirmed",
    }
    assert outcome.trials["b"].blocks == 2


@pytest.mark.parametrize(("status", "is_last"), [("fail", True), ("informative", False)])
def test_edits_to_retune_have_the_time_that_others_which_fail_leave(
    status: FindingStatus, is_last: bool
) -> None:
    executor = FakeExecutor({"batch": 2.0, "a": 2.0, "b": 1.5})
    batch = make_finding("batch", effect="changes a hyper-parameter")
    others = [make_finding(each, status=status) for each in ("a", "b")]
    outcome = try_edits(executor, [batch, *others], 60.0)
    blocks = [variant for kind, variant in executor.calls if kind == "block"]
    assert (blocks.index("batch") > 10) is is_last
    assert outcome.trials["batch"].state == "confirmed"
    assert outcome.combined.findings == ["a", "b"]
    assert [(one.edit, one.reason) for one in outcome.combined.dropped] == [("batch", RETUNE)]


@pytest.mark.parametrize(
    ("at_most", "prepare_s", "gives_way"),
    [(9.0, 2.0, True), (1.02, 2.0, False), (9.0, 15.0, False)],
)
def test_an_undecided_edit_gives_way_to_one_that_may_gain_more_and_can_be_tried(
    at_most: float, prepare_s: float, gives_way: bool
) -> None:
    """Blocks are long, so that only one edit is tried at once."""
    speeds = {"little": 1.05, "other": 5.0}
    executor = FakeExecutor(speeds, step_ms=300.0, noise=0.05, prepare_s=prepare_s, warmup_s=1.0)
    findings = [make_finding("little", 9.5), make_finding("other", at_most)]
    little = try_edits(executor, findings, 60.0).trials["little"]
    assert little.state == "inconclusive"
    assert ("gave way" in (little.reason or "")) is gives_way


def test_several_steps_in_one_call_wait_where_their_blocks_would_take_the_time() -> None:
    several = make_edit("several", changes=(SetModel({"steps_per_execution": 16}),))
    executor = FakeExecutor({"a": 2.0, "several": 1.0}, step_ms=100.0)
    try_edits(executor, [several, "a"], 30.0)
    blocks = [variant for kind, variant in executor.calls if kind == "block"]
    assert "several" not in blocks[: blocks.index("a")]
