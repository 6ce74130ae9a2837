from __future__ import annotations

import json
import re

import pytest

from pipediag.reporters.terminal.encoded import shortened
from pipediag.reporters.terminal.limits import SPARING
from pipediag.rules.registry import METAS
from pipediag.rules.step import padding
from tests.rules import said


def test_each_rule_has_a_file() -> None:
    files = {file.stem for file in said.FOLDER.glob("*.json")}
    assert files == set(METAS)


def test_each_rule_that_can_fail_is_seen_failing() -> None:
    texts = {rule: said.file_of(rule).read_text("utf-8") for rule in METAS}
    only_inform = {rule for rule, text in texts.items() if '"status": "fail"' not in text}
    assert only_inform == {
        meta.id
        for meta in METAS.values()
        if meta.severity == "info" and meta.id != "mixed-precision"
    }


def test_what_is_not_kept_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(said, "collected", None)
    new = padding.META.finding("pass", "It says this for the first time.")
    with pytest.raises(AssertionError, match=re.escape(said.COMMAND)):
        said.as_kept("padding", [new])


ROUNDED_AWAY = re.compile(r"(?<![\d.,])0(\.0+)? (s|ms|min|KiB|MiB|GiB|kB|MB|GB)\b")


@pytest.mark.parametrize("rule", METAS)
def test_no_advice_gives_a_time_or_a_size_that_was_rounded_to_nothing(rule: str) -> None:
    advice = [json.loads(one).get("advice", "") for one in said.read(rule)]
    assert [text for text in advice if ROUNDED_AWAY.search(text)] == []


DOES = re.compile(
    r"(^|: |; |, and |, or |\. (It|Its) [^.:]*: )"
    r"(add|build|call|cast|clip|compare|compile|cut|do|don't|drop|end|evaluate|fuse|give|install|"
    r"keep|leave|let|load|log|look|make|map|move|pad|pass|prepare|put|read|remove|replace|run|"
    r"several|shuffle|swap|take|train|try|unset|update|validate|work|write|one of|`)",
    re.IGNORECASE,
)
LEAST_SHOWN = min(limits.leading_characters for limits in SPARING)


@pytest.mark.parametrize("rule", METAS)
def test_what_the_terminal_shows_of_an_advice_says_what_to_do(rule: str) -> None:
    """It has room for its beginning alone, which is no place for reasons."""
    failed = [json.loads(one) for one in said.read(rule) if json.loads(one)["status"] == "fail"]
    shown = {shortened(finding["advice"], LEAST_SHOWN) for finding in failed}
    assert [text for text in sorted(shown) if not DOES.search(text)] == []
