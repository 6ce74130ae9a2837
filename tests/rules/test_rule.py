from __future__ import annotations

from dataclasses import replace

from pipediag.rules.pipeline.python_input import META
from pipediag.rules.rule import with_edit
from pipediag.session.edits import Edit, Remove
from pipediag.session.trials import NOT_TRIED

EDIT = Edit("python-input", "without the map", (Remove("map"),))


def test_a_failure_keeps_its_edit() -> None:
    finding = META.finding("fail", "", edit=EDIT)
    assert (finding.edit, finding.trial) == (EDIT, NOT_TRIED)


def test_a_failure_without_an_edit_says_why() -> None:
    assert META.finding("fail", "").trial.reason == META.untried
    finding = META.finding("fail", "", untried="It is unique.")
    assert (finding.trial.state, finding.trial.reason) == ("not_tried", "It is unique.")


def test_what_only_informs_is_tried_where_its_rule_says_so() -> None:
    assert META.finding("informative", "", edit=EDIT).edit is None
    trying = replace(META, tried_when_informing=True)
    informing = trying.finding("informative", "", edit=EDIT)
    assert (informing.edit, informing.severity) == (EDIT, "info")
    assert informing.effect_on_results == "same up to order or rounding"
    assert trying.finding("pass", "", edit=EDIT).edit is None


def test_an_edit_is_given_to_failures_and_to_what_is_tried_when_it_informs() -> None:
    failed = META.finding("fail", "")
    assert with_edit(META, failed, EDIT, "").edit == EDIT
    assert with_edit(META, failed, EDIT, "").trial == NOT_TRIED
    assert with_edit(META, failed, None, "It is unique.").trial.reason == "It is unique."
    informs, passed = META.finding("informative", ""), META.finding("pass", "")
    assert with_edit(META, informs, EDIT, "") == informs
    tried = replace(META, tried_when_informing=True)
    assert with_edit(tried, informs, EDIT, "").edit == EDIT
    assert with_edit(tried, passed, EDIT, "") == passed
