from __future__ import annotations

from pipediag.rules.reference import PAGE, markdown
from pipediag.rules.registry import RULES


def test_the_committed_page_is_current() -> None:
    assert PAGE.read_text(encoding="utf-8") == markdown(), "run python -m pipediag.rules.reference"


def test_every_rule_has_a_heading_and_its_thresholds() -> None:
    page = markdown()
    for rule in RULES:
        assert f"\n## {rule.META.id}\n" in page
        for threshold in rule.META.thresholds:
            assert threshold.source in page
