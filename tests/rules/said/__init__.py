"""All that the rules say in the tests beside this folder: a file of findings for each rule.

Whoever changes what a rule says runs `python -m tests.rules.said` and reads the difference.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipediag.session.findings import Finding

FOLDER = Path(__file__).parent
COMMAND = "python -m tests.rules.said"

Findings = dict[str, dict[str, Any]]
"""By their text, so that two tests that see the same keep one."""

collected: dict[str, Findings] | None = None
"""By rule, while they are written; None while they are compared."""


def as_kept(rule: str, findings: Iterable[Finding]) -> None:
    """Hold the findings against the rule's file: word for word, number for number."""
    texts = {text_of(finding): in_full(finding) for finding in findings}
    if collected is not None:
        collected.setdefault(rule, {}).update(texts)
        return
    kept = read(rule)
    for text, finding in texts.items():
        assert text in kept, f"{rule} says something new; is it right? Then `{COMMAND}`:\n{finding}"


def in_full(finding: Finding) -> dict[str, Any]:
    return finding.model_dump(mode="json", exclude_defaults=True, exclude={"rule"})


def text_of(finding: Finding) -> str:
    return json.dumps(in_full(finding))


def read(rule: str) -> set[str]:
    file = file_of(rule)
    if not file.exists():
        return set()
    return {json.dumps(finding) for finding in json.loads(file.read_text(encoding="utf-8"))}


def write(rule: str, findings: Findings) -> None:
    ordered = [findings[text] for text in sorted(findings)]
    text = json.dumps(ordered, indent=1, ensure_ascii=False)
    file_of(rule).write_text(f"{text}\n", encoding="utf-8")


def file_of(rule: str) -> Path:
    return FOLDER / f"{rule}.json"
