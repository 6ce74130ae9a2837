from __future__ import annotations

from pipediag.rules.description import paragraphs
from pipediag.rules.pipeline import debug_mode, misplaced_cache
from pipediag.rules.rule import Meta
from pipediag.rules.step import dense_embedding_update, padding


def trial(meta: Meta) -> str:
    (text,) = dict(paragraphs(meta))["Trial"]
    return text


def test_says_whether_the_edit_is_tried() -> None:
    assert "measured where the run allows it." in trial(misplaced_cache.META)
    assert "also where the rule only informs" in trial(padding.META)
    assert trial(dense_embedding_update.META).startswith(
        "The edit is applied and measured where the run allows it. SGD for the tables alone is "
    )
    assert trial(debug_mode.META) == f"None. {debug_mode.META.untried}"
