from __future__ import annotations

from pipediag.session.edits import SetParameters
from pipediag.trials.candidates import candidates, together
from tests.trials.bench import MODEL_CHANGE, make_edit, make_finding


def ids(*findings: object) -> list[str]:
    return [one.edit.id for one in candidates(findings)]  # type: ignore[arg-type]


def test_in_the_order_of_the_findings() -> None:
    assert ids(
        make_finding("results", None), make_finding("small", 1.1), make_finding("large", 3.0)
    ) == ["results", "small", "large"]


def test_only_what_fails_or_informs_is_tried() -> None:
    assert ids(
        make_finding("fails", 1.1),
        make_finding("informs", 9.0, status="informative"),
        make_finding("passes", 9.0, status="pass"),
    ) == ["fails", "informs"]


def test_findings_without_an_edit_are_left_out() -> None:
    assert ids(make_finding("a").model_copy(update={"edit": None})) == []


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


def test_together_they_run_through_all_epochs_where_one_of_them_does() -> None:
    through = make_edit("through", runs_through=True)
    one, other = candidates([make_finding(through), make_finding("other")])
    assert together([one, other]).runs_through
    assert not together([other]).runs_through
