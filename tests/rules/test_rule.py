from __future__ import annotations

from dataclasses import replace

from pipediag.rules.python_input import PYTHON_INPUT
from pipediag.rules.rule import with_edit
from pipediag.session.edits import Edit, Remove
from pipediag.session.trials import NOT_TRIED

EDIT = Edit("python-input", "without the map", (Remove("map"),))


def test_a_failure_keeps_its_edit() -> None:
    finding = PYTHON_INPUT.finding("fail", "", edit=EDIT)
    assert (finding.edit, finding.trial) == (EDIT, NOT_TRIED)


def test_a_failure_without_an_edit_says_why() -> None:
    assert PYTHON_INPUT.finding("fail", "").trial.reason == PYTHON_INPUT.untried
    finding = PYTHON_INPUT.finding("fail", "", untried="It is unique.")
    assert (finding.trial.state, finding.trial.reason) == ("not_tried", "It is unique.")


def test_what_only_informs_is_tried_where_its_rule_says_so() -> None:
    assert PYTHON_INPUT.finding("informative", "", edit=EDIT).edit is None
    trying = replace(PYTHON_INPUT, tried_when_informing=True)
    informing = trying.finding("informative", "", edit=EDIT)
    assert (informing.edit, informing.severity) == (EDIT, "info")
    assert informing.effect_on_results == "same up to order or rounding"
    assert trying.finding("pass", "", edit=EDIT).edit is None


def test_an_edit_is_given_to_failures_and_to_what_is_tried_when_it_informs() -> None:
    failed = PYTHON_INPUT.finding("fail", "")
    assert with_edit(PYTHON_INPUT, failed, EDIT, "").edit == EDIT
    assert with_edit(PYTHON_INPUT, failed, EDIT, "").trial == NOT_TRIED
    assert with_edit(PYTHON_INPUT, failed, None, "It is unique.").trial.reason == "It is unique."
    informs, passed = PYTHON_INPUT.finding("informative", ""), PYTHON_INPUT.finding("pass", "")
    assert with_edit(PYTHON_INPUT, informs, EDIT, "") == informs
    tried = replace(PYTHON_INPUT, tried_when_informing=True)
    assert with_edit(tried, informs, EDIT, "").edit == EDIT
    assert with_edit(tried, passed, EDIT, "") == passed
