from __future__ import annotations

import pytest

from pipediag.session.trials import Combined
from pipediag.trials.candidates import RETUNE
from pipediag.trials.combination import FINAL_ROUNDS
from pipediag.vocabulary import BASE
from tests.trials.bench import FakeExecutor, make_finding, try_edits


def combined(executor: FakeExecutor, names: str = "ab", budget_s: float = 120.0) -> Combined:
    found = try_edits(executor, [make_finding(name) for name in names], budget_s).combined
    assert found is not None
    return found


def dropped(found: Combined) -> dict[str, str]:
    return {one.edit: one.reason for one in found.dropped}


def test_edits_that_add_up_are_in_and_measured_in_rounds_of_their_own() -> None:
    executor = FakeExecutor({"a": 1.5, "b": 2.0, "c": 1.2})
    found = combined(executor, "abc")
    assert found.findings == ["b", "a", "c"]
    assert found.speedup == pytest.approx(3.6, rel=0.05)
    assert found.ci95 is not None
    assert found.ci95[0] < 3.6 < found.ci95[1]
    assert found.blocks == FINAL_ROUNDS
    assert found.dropped == []


def test_an_edit_that_adds_nothing_is_dropped_with_its_ratio() -> None:
    executor = FakeExecutor({"a": 2.0, "b": 1.5}, together={"a + b": 2.0})
    found = combined(executor)
    assert found.findings == ["a"]
    assert found.speedup == pytest.approx(2.0, rel=0.05)
    assert dropped(found)["b"].startswith("Adds nothing once try a is in: 1.0")


def test_an_edit_that_gets_in_the_way_of_another_is_dropped_with_its_ratio() -> None:
    executor = FakeExecutor({"a": 2.0, "b": 1.5}, together={"a + b": 1.6})
    found = combined(executor)
    assert found.findings == ["a"]
    assert dropped(found)["b"].startswith("Makes it slower once try a is in: 0.8")


def test_a_base_that_fails_while_combining_leaves_the_best_edit() -> None:
    executor = FakeExecutor({"a": 3.0, "b": 2.0}, refuse_block={BASE: (8, "The data ended.")})
    found = combined(executor)
    assert found.findings == ["a"]
    assert dropped(found) == {
        "b": "The pipeline as written can't be run for a trial: The data ended."
    }


def test_an_edit_that_might_add_something_is_dropped_as_well() -> None:
    executor = FakeExecutor({"a": 2.0, "b": 1.5}, together={"a + b": 2.06}, noise=0.08)
    found = combined(executor, budget_s=300.0)
    assert found.findings == ["a"]
    assert dropped(found)["b"].startswith(
        "Whether it adds anything once try a is in stayed open after 15 rounds: 1.0"
    )


def test_edits_that_cannot_be_built_together_are_dropped_with_that_reason() -> None:
    executor = FakeExecutor(
        {"a": 3.0, "b": 2.0, "c": 1.5}, refuse_prepare={"a + b": "Both move the cache."}
    )
    found = combined(executor, "abc")
    assert found.findings == ["a", "c"]
    assert found.speedup == pytest.approx(4.5, rel=0.05)
    assert dropped(found) == {"b": "It can't be tried together with try a: Both move the cache."}


def test_edits_that_fail_together_on_the_way_are_dropped() -> None:
    executor = FakeExecutor({"a": 3.0, "b": 2.0}, refuse_block={"a + b": (2, "Out of memory.")})
    found = combined(executor)
    assert found.findings == ["a"]
    assert dropped(found) == {"b": "It can't be tried together with try a: Out of memory."}


def test_the_best_edit_alone_heads_the_report_when_time_is_short() -> None:
    executor = FakeExecutor({"a": 3.0, "b": 2.0})
    found = combined(executor, budget_s=11.0)
    assert found.findings == ["a"]
    assert dropped(found) == {"b": "No time left to try it together with try a."}


def test_two_confirmed_edits_keep_time_for_each_other() -> None:
    names = "abcdefghij"
    executor = FakeExecutor({"a": 3.0, "b": 2.0} | dict.fromkeys(names[2:], 1.025))
    findings = [make_finding(name) for name in names]
    outcome = try_edits(executor, findings, 40.0)
    assert outcome.combined is not None
    assert outcome.combined.findings == ["a", "b"]
    assert outcome.combined.speedup == pytest.approx(6.0, rel=0.05)


def test_a_hyper_parameter_is_measured_but_never_in() -> None:
    executor = FakeExecutor({"batch": 5.0, "a": 2.0, "b": 1.5})
    outcome = try_edits(
        executor,
        [
            make_finding("batch", 6.0, effect="changes a hyper-parameter"),
            make_finding("a"),
            make_finding("b"),
        ],
        120.0,
    )
    assert outcome.trials["batch"].state == "confirmed"
    assert outcome.combined is not None
    assert outcome.combined.findings == ["a", "b"]
    assert dropped(outcome.combined) == {"batch": RETUNE}


def test_a_hyper_parameter_alone_does_not_head_the_report() -> None:
    outcome = try_edits(
        FakeExecutor({"batch": 5.0}), [make_finding("batch", effect="changes a hyper-parameter")]
    )
    assert outcome.combined is None
    assert outcome.combined_missing is not None


def test_what_holds_on_a_condition_is_left_to_the_user() -> None:
    edits = [make_finding(name) for name in "ab"]
    edits[0] = edits[0].model_copy(update={"condition": "if the data is the same"})
    outcome = try_edits(FakeExecutor({"a": 5.0, "b": 2.0}), edits)
    assert outcome.trials["a"].state == "confirmed"
    assert outcome.combined is not None
    assert outcome.combined.findings == ["b"]
    assert [one.edit for one in outcome.combined.dropped] == ["a"]


@pytest.mark.parametrize(("same", "combined"), [(5_000, ["a", "b"]), (20, ["b"])])
def test_a_condition_that_was_seen_to_hold_is_none(same: int, combined: list[str]) -> None:
    edits = [make_finding(name) for name in "ab"]
    edits[0] = edits[0].model_copy(update={"condition": "if the data is the same"})
    executor = FakeExecutor({"a": 5.0, "b": 2.0}, same_elements={"a": same})
    outcome = try_edits(executor, edits, 120.0)
    assert outcome.trials["a"].same_elements == same
    assert outcome.combined is not None
    assert outcome.combined.findings == combined


def test_a_process_lost_while_combining_leaves_what_was_in() -> None:
    executor = FakeExecutor({"a": 3.0, "b": 2.0, "c": 1.5}, lose_block={"a + b + c": 2})
    outcome = try_edits(executor, [make_finding(name) for name in "abc"], 120.0)
    found = outcome.combined
    assert found is not None
    assert found.findings == ["a", "b"]
    # From the rounds in which it was compared with the best alone; base was in them.
    assert found.speedup == pytest.approx(6.0, rel=0.05)
    assert dropped(found) == {
        "c": "The trials ended while trying try c on top of try a and try b: "
        "It was killed by the kernel."
    }
    assert outcome.run.notes == [dropped(found)["c"]]
    assert {trial.state for trial in outcome.trials.values()} == {"confirmed"}
