from __future__ import annotations

from pipediag.rules.defaults import DEBUG_MODE
from pipediag.rules.model_inputs import PADDING
from pipediag.rules.reference import paragraphs
from pipediag.rules.registry import CAUSES
from pipediag.rules.rule import Meta


def trial(meta: Meta) -> str:
    (text,) = dict(paragraphs([meta]))["Trial"]
    return text


def test_says_whether_the_edit_is_tried() -> None:
    assert "also where the rule only informs" in trial(PADDING)
    assert trial(DEBUG_MODE) == f"None. {DEBUG_MODE.untried}"


def test_a_rule_with_several_causes_speaks_of_each() -> None:
    causes = CAUSES["tf-data-defaults"]
    headings = [heading for heading, _ in paragraphs(causes)]
    assert {meta.title_failed for meta in causes} <= set(headings)
