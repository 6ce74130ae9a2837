from __future__ import annotations

from pipediag.session.edits import SetParameters
from pipediag.trials.candidates import candidates, together
from tests.trials.bench import MODEL_CHANGE, make_edit, make_finding


def ids(*findings: object) -> list[str]:
    return [one.edit.id for one in candidates(findings)]  # type: ignore[arg-type]


def test_the_largest_gain_first_and_unknown_ones_last() -> None:
    assert ids(
        make_finding("unknown", None), make_finding("small", 1.1), make_finding("large", 3.0)
    ) == ["large", "small", "unknown"]


def test_what_fails_goes_before_what_informs_and_the_rest_is_not_tried() -> None:
    assert ids(
        make_finding("informs", 9.0, status="informative"),
        make_finding("passes", 9.0, status="pass"),
        make_finding("fails", 1.1),
    ) == ["fails", "informs"]


def test_findings_without_an_edit_are_left_out() -> None:
    assert ids(make_finding("a").model_copy(update={"edit": None})) == []


def test_an_edit_follows_the_one_that_its_finding_needs_first() -> None:
    assert ids(
        make_finding("cache", 3.0, needs_first="slow-map"),
        make_finding("other", 2.0),
        make_finding("map", 1.5, rule="slow-map"),
    ) == ["other", "map", "cache"]


def test_need_of_a_rule_without_an_edit_holds_nothing_up() -> None:
    assert ids(make_finding("a", 3.0, needs_first="elsewhere"), make_finding("b", 2.0)) == [
        "a",
        "b",
    ]


def test_two_that_need_each_other_go_by_their_gain() -> None:
    assert ids(
        make_finding("a", 2.0, needs_first="b"), make_finding("b", 3.0, needs_first="a")
    ) == ["b", "a"]


def test_the_same_changes_are_tried_once() -> None:
    first = make_edit("first")
    twin = make_edit("twin", changes=first.changes)
    found = candidates([make_finding(first, 3.0), make_finding(twin, 2.0)])
    assert [(one.edit.id, one.same_as) for one in found] == [("first", ("twin",))]


def test_one_alone_is_its_own_arm() -> None:
    (only,) = candidates([make_finding("a")])
    assert together([only]) == only.arm


def test_together_they_are_one_arm_with_all_changes() -> None:
    found = candidates([make_finding("a", 3.0), make_finding("b", 2.0)])
    arm = together(found)
    assert arm.name == "a + b"
    assert [change.op_id for change in arm.changes if isinstance(change, SetParameters)] == [
        "a",
        "b",
    ]
    assert arm.check == "equal"


def test_the_weakest_promise_holds_for_all_of_them() -> None:
    def check(*edits: object) -> str | None:
        return together(candidates([make_finding(one) for one in edits])).check  # type: ignore[arg-type]

    equal = make_edit("equal")
    shape = make_edit("shape", check="shape")
    unchecked = make_edit("unchecked", check=None)
    model = make_edit("model", changes=MODEL_CHANGE, check=None)
    assert check(equal, shape) == "shape"
    assert check(equal, shape, unchecked) is None
    assert check(equal, model) == "equal"
