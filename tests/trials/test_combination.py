"""Sharing the time that is left between adding edits and measuring those that are in."""

from __future__ import annotations

import pytest

from pipediag.estimates import LOOKS
from pipediag.session.edits import IN_BATCHES, Insert, Move, Replace, SetModel
from pipediag.session.findings import also
from pipediag.session.trials import Combined
from pipediag.trials.candidates import candidates, together
from pipediag.trials.combination import FINAL_ROUNDS
from tests.trials.bench import MODEL_CHANGE, FakeExecutor, made, make_edit, make_finding, try_edits


def combined(executor: FakeExecutor, names: str = "ab", budget_s: float = 120.0) -> Combined:
    found = try_edits(executor, names, budget_s).combined
    assert found is not None
    return found


def dropped(found: Combined) -> dict[str, str]:
    return {one.edit: one.reason for one in found.dropped}


def test_edits_that_add_up_are_in_and_measured_in_rounds_of_their_own() -> None:
    executor = FakeExecutor({"a": 1.5, "b": 2.0, "c": 1.2})
    found = combined(executor, "abc")
    assert found.findings == ["b", "a", "c"]
    assert found.speedup == pytest.approx(3.6, rel=0.05)
    assert found.ci95[0] < 3.6 < found.ci95[1]
    assert found.blocks == FINAL_ROUNDS
    assert executor.count("block", "b + a + c") == LOOKS[0] + FINAL_ROUNDS
    assert found.dropped == []


def test_an_edit_that_adds_nothing_is_dropped_with_its_ratio() -> None:
    executor = FakeExecutor({"a": 2.0, "b": 1.5}, together={"a + b": 2.0})
    found = combined(executor)
    assert found.findings == ["a"]
    assert found.speedup == pytest.approx(2.0, rel=0.05)
    assert ": 1.0" in dropped(found)["b"]


def test_an_edit_that_makes_them_a_little_faster_stays_in() -> None:
    """It is confirmed alone, and 1.05 times as fast with the other one: neither more nor less."""
    executor = FakeExecutor({"a": 2.0, "b": 1.6}, together={"a + b": 2.1})
    assert combined(executor).findings == ["a", "b"]


@pytest.mark.parametrize(("adds", "findings"), [(1.3, ["a", "b"]), (1.0, ["a"])])
def test_an_edit_that_seems_to_add_much_stays_in_on_a_noisy_machine(
    adds: float, findings: list[str]
) -> None:
    executor = FakeExecutor({"a": 3.0, "b": 2.5}, together={"a + b": 3.0 * adds}, noise=0.8)
    assert combined(executor, budget_s=30.0).findings == findings


@pytest.mark.parametrize("alone", [1.0, 1.02])
def test_an_edit_that_another_one_hides_is_confirmed_on_top_of_it(alone: float) -> None:
    executor = FakeExecutor({"a": 3.0, "b": alone}, together={"a + b": 6.0})
    outcome = try_edits(executor, "ab", 120.0)
    assert outcome.combined.findings == ["a", "b"]
    assert outcome.combined.speedup == pytest.approx(6.0, rel=0.05)
    assert outcome.combined.blocks == FINAL_ROUNDS
    hidden = outcome.trials["b"]
    assert (hidden.state, hidden.on_top_of) == ("confirmed", ["a"])
    assert hidden.speedup == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize(
    ("first", "alone", "both"), [(3.0, 1.0, 3.0), (3.0, 0.8, 6.0), (1.1, 1, 2)]
)
def test_an_edit_that_adds_nothing_or_is_not_hidden_keeps_its_own_trial(
    first: float, alone: float, both: float
) -> None:
    executor = FakeExecutor({"a": first, "b": alone}, together={"a + b": both})
    outcome = try_edits(executor, "ab", 120.0)
    assert outcome.combined.findings == ["a"]
    assert (outcome.trials["b"].state, outcome.trials["b"].on_top_of) == ("refuted", [])


def test_an_edit_of_a_condition_is_not_tried_on_top() -> None:
    executor = FakeExecutor({"a": 3.0, "b": 1.0}, together={"a + b": 6.0})
    edits = made("ab")
    edits[1] = edits[1].but(condition="if the data is the same")
    outcome = try_edits(executor, edits, 120.0)
    assert outcome.combined.findings == ["a"]
    assert outcome.trials["b"].state == "refuted"


def test_data_that_was_seen_to_be_the_same_is_so_on_top_of_others() -> None:
    executor = FakeExecutor(
        {"a": 3.0, "b": 1.0}, together={"a + b": 6.0}, same_elements={"b": 5_000}
    )
    edits = made("ab")
    edits[1] = edits[1].but(condition="if the data is the same")
    outcome = try_edits(executor, edits, 120.0)
    assert outcome.combined.findings == ["a", "b"]
    assert outcome.trials["b"].same_elements == 5_000


def test_an_edit_whose_elements_are_checked_is_first_tried_alone() -> None:
    informing = make_finding("b", None, status="informative")
    executor = FakeExecutor({"a": 3.0}, {"a + b": 6.0}, refuse_prepare={"b": "Other elements."})
    outcome = try_edits(executor, ["a", informing], 120.0)
    assert outcome.combined.findings == ["a"]
    assert outcome.trials["b"].reason == "Other elements."
    assert executor.count("prepare", "a + b") == 0


def test_nothing_is_tried_on_top_of_what_costs_the_run() -> None:
    executor = FakeExecutor({"a": 3.0}, together={"a + b": 6.0})
    outcome = try_edits(executor, "ab", 120.0, of_all=lambda _: 0.9)
    assert outcome.trials["b"].state == "refuted"
    assert executor.count("prepare", "a + b") == 0


def test_an_edit_that_fails_on_top_of_others_keeps_its_own_trial() -> None:
    executor = FakeExecutor({"a": 3.0}, refuse_prepare={"a + b": "Both move the map."})
    outcome = try_edits(executor, "ab", 120.0)
    assert outcome.combined.findings == ["a"]
    assert outcome.trials["b"].state == "refuted"


def test_several_steps_in_one_call_are_tried_on_top_of_what_is_confirmed() -> None:
    several = make_edit("several", changes=(SetModel({"steps_per_execution": 16}),), check=None)
    executor = FakeExecutor({"a": 5.0, "several": 1.3}, step_ms=100.0)
    outcome = try_edits(executor, [several, "a"], 120.0)
    assert outcome.combined.findings == ["a", "several"]
    assert outcome.trials["several"].on_top_of == ["a"]
    assert executor.count("block", "several") == 0


def test_what_costs_the_run_more_than_its_steps_gain_is_left_out() -> None:
    compiled = make_edit("xla", changes=MODEL_CHANGE, check=None)
    executor = FakeExecutor(
        {"a": 5.0}, together={"a + xla": 8.0}, first_call_ns={"a + xla": 10**11}
    )
    outcome = try_edits(
        executor, ["a", compiled], of_all=lambda one: 2.0 - (0.5 if one.once_s else 0.0)
    )
    assert outcome.trials["xla"].state == "refuted"
    assert outcome.combined.findings == ["a"]


def test_an_edit_on_top_of_others_is_taken_to_cost_what_they_do() -> None:
    """With steps as written, 16 of them in each call would take the time that is left."""
    several = make_edit("several", changes=(SetModel({"steps_per_execution": 16}),), check=None)
    executor = FakeExecutor({"a": 40.0, "several": 1.5}, step_ms=200.0)
    outcome = try_edits(executor, [several, "a"], 60.0)
    assert outcome.combined.findings == ["a", "several"]


def test_of_two_ways_for_one_operation_the_better_is_in() -> None:
    ways = [make_finding(one).but(rule="map", op_id="op1") for one in "ab"]
    executor = FakeExecutor({"a": 2.0, "b": 3.0, "c": 1.5})
    outcome = try_edits(executor, [*ways, make_finding("c")], 120.0)
    assert outcome.combined.findings == ["b", "c"]
    assert dropped(outcome.combined).keys() == {"a"}
    assert executor.count("prepare", "b + a") == 0


def test_a_better_way_that_informs_alone_is_compared_before_others_are_added() -> None:
    ways = [
        make_finding(one, None, status=status).but(rule="map", op_id="op1")
        for one, status in (("a", "fail"), ("b", "informative"))
    ]
    executor = FakeExecutor({"a": 2.0, "b": 3.0, "c": 1.5})
    outcome = try_edits(executor, [*ways, make_finding("c")], 120.0)
    assert outcome.combined.findings == ["b", "c"]


def test_what_gains_little_leaves_its_time_to_what_adds_to_a_large_gain() -> None:
    speeds = {"a": 5.0, "cache": 4.0, "little": 1.03}
    executor = FakeExecutor(speeds, step_ms=60.0, noise=0.04, warmup_s=0.5)
    outcome = try_edits(executor, ["a", CACHE, "little"], 40.0)
    assert outcome.trials["little"].state == "inconclusive"
    assert outcome.trials["little"].blocks == LOOKS[0]
    assert outcome.combined.findings == ["a", "cache"]


CACHE = make_edit("cache", changes=(Insert("a", "cache", {"elements": 9}),))


def test_edits_in_front_of_a_cache_are_in_for_the_epoch_that_fills_it() -> None:
    together = {"a + b": 6.0, "a + b + cache": 40.0, "cache + a": 40.0}
    executor = FakeExecutor({"a": 3.0, "b": 2.0, "cache": 40.0}, together)
    found = try_edits(executor, [CACHE, "a", "b"], 120.0).combined
    assert found.findings == ["a", "b", "cache"]
    assert found.speedup == pytest.approx(40.0, rel=0.05)
    assert found.filling_speedup == pytest.approx(6.0, rel=0.05)


@pytest.mark.parametrize(
    ("speed", "findings"), [(40.0, ["cache"]), (1.5, ["a"])], ids=["more", "less"]
)
def test_where_a_cache_can_not_be_added_the_greater_gain_is_in(
    speed: float, findings: list[str]
) -> None:
    executor = FakeExecutor(
        {"a": 3.0, "cache": speed}, refuse_prepare={"a + cache": "Both move the map."}
    )
    found = try_edits(executor, [CACHE, "a"], 120.0).combined
    assert found.findings == findings
    assert found.filling_speedup is None
    assert "Both move the map." in found.dropped[0].reason


@pytest.mark.parametrize(("of_cache", "findings"), [(1.3, ["cache"]), (1.1, ["a"])])
def test_what_gains_more_of_the_run_is_in_where_both_together_were_not_shown_to_gain_more(
    of_cache: float, findings: list[str]
) -> None:
    of_run = {"a": 1.2, "cache": of_cache}
    executor = FakeExecutor({"a": 3.0, "cache": 4.0}, {"a + cache": 3.0})
    found = try_edits(
        executor, [CACHE, "a"], 120.0, of_run=lambda one: of_run[one.edit.id] if one.edit else None
    ).combined
    assert found.findings == findings


def test_where_one_of_several_can_not_be_with_a_cache_the_others_are_in() -> None:
    executor = FakeExecutor(
        {"a": 3.0, "b": 1.5, "cache": 40.0},
        {"a + b": 4.5, "a + cache": 40.0},
        refuse_prepare={"a + b + cache": "Both move the map.", "a + cache + b": "Both do."},
    )
    found = try_edits(executor, [CACHE, "a", "b"], 120.0).combined
    assert found.findings == ["a", "cache"]
    assert found.filling_speedup == pytest.approx(3.0, rel=0.05)
    assert dropped(found).keys() == {"b"}


def test_an_edit_that_is_added_again_counts_by_its_own_gain() -> None:
    executor = FakeExecutor(
        {"a": 3.0, "b": 1.5, "cache": 4.8},
        {"a + b": 4.5, "a + cache": 4.4, "a + cache + b": 4.4},
        refuse_prepare={"a + b + cache": "Both move the map."},
    )
    found = try_edits(executor, [CACHE, "a", "b"], 200.0).combined
    assert found.findings == ["a", "cache"]
    assert dropped(found).keys() == {"b"}


@pytest.mark.parametrize(
    ("same", "further", "combined"),
    [(5_000, None, ["a", "b"]), (20, None, ["b"]), (5_000, "its data fits in memory", ["b"])],
)
def test_a_condition_that_was_seen_to_hold_is_none(
    same: int, further: str | None, combined: list[str]
) -> None:
    edits = made("ab")
    condition = "if the data is the same"
    condition = also(condition, further) if further else condition
    edits[0] = edits[0].but(condition=condition)
    executor = FakeExecutor({"a": 5.0, "b": 2.0}, same_elements={"a": same})
    outcome = try_edits(executor, edits, 120.0)
    assert outcome.trials["a"].same_elements == same
    assert outcome.combined.findings == combined


def test_a_process_lost_while_combining_leaves_what_was_in() -> None:
    executor = FakeExecutor({"a": 3.0, "b": 2.0, "c": 1.5}, lose_block={"a + b + c": 2})
    outcome = try_edits(executor, "abc", 120.0)
    found = outcome.combined
    assert found.findings == ["a", "b"]
    # From the rounds in which it was compared with the best alone; base was in them.
    assert found.speedup == pytest.approx(6.0, rel=0.05)
    assert dropped(found) == {
        "c": "The trials ended while trying try c on top of try a and try b: "
        "It was killed by the kernel."
    }
    assert outcome.run.notes == [dropped(found)["c"]]
    assert {trial.state for trial in outcome.trials.values()} == {"confirmed"}


def ids(*findings: object) -> list[str]:
    return [one.edit.id for one in candidates(findings)]


def test_only_what_fails_or_informs_is_tried() -> None:
    assert ids(
        make_finding("fails", 1.1),
        make_finding("informs", 9.0, status="informative"),
        make_finding("passes", 9.0, status="pass"),
    ) == ["fails", "informs"]


def test_what_waits_for_the_users_decision_is_tried_before_what_gains_less() -> None:
    cache = make_finding("cache", 1.0, status="informative")
    assert ids(
        make_finding("much", 4.0),
        make_finding("little", 1.1),
        cache.but(evidence={"at_most_if_the_same_ratio": 3.0}),
        make_finding("unknown", 1.0, status="informative"),
    ) == ["much", "cache", "little", "unknown"]


def test_an_edit_takes_its_other_form_where_a_cache_follows_what_it_changes() -> None:
    moved, apart = (Move("map", "batch"),), (Replace("map", IN_BATCHES, {"elements": 64}),)
    edit = make_edit("moves", changes=moved, before_cache=apart)
    for place, expected in (("map", apart), ("files", moved)):
        cache = (Insert(place, "cache", {"elements": 9}),)
        both = together(candidates(made([edit, make_edit("cache", changes=cache)])))
        assert both.changes == (*expected, *cache)
    assert together(candidates(made([edit]))).changes == moved


def test_the_weakest_promise_holds_for_all_of_them() -> None:
    def check(*edits: object) -> str | None:
        return together(candidates(made(edits))).check

    equal = make_edit("equal")
    shape = make_edit("shape", check="shape")
    unchecked = make_edit("unchecked", check=None)
    model = make_edit("model", changes=MODEL_CHANGE, check=None)
    assert check(equal, shape) == "shape"
    assert check(equal, shape, unchecked) is None
    assert check(equal, model) == "equal"
