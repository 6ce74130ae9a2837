"""Names that a link can point at: the same for the same finding in the next run's report."""

from __future__ import annotations

import re
from collections import Counter

from pipediag.session.findings import Finding
from pipediag.session.model import Session

_NOT_IN_A_NAME = re.compile(r"[^A-Za-z0-9_-]+")
_LONGEST = 60


class Anchors:
    """The anchors of a session's findings and operations."""

    def __init__(self, session: Session) -> None:
        self._findings = session.findings
        taken: Counter[str] = Counter()
        self._names: list[str] = []
        for finding in session.findings:
            name = _name("finding", finding.rule, finding.op_id)
            taken[name] += 1
            self._names.append(name if taken[name] == 1 else f"{name}--{taken[name]}")
        ops = session.pipeline.ops if session.pipeline is not None else []
        self._operations: dict[str, str] = {}
        for op in ops:
            name = _name("operation", op.id)
            taken[name] += 1
            self._operations[op.id] = name if taken[name] == 1 else f"{name}--{taken[name]}"

    def finding(self, finding: Finding) -> str:
        """`finding-missing-cache-map_0`: its rule and the operation that it is about."""
        place = next(at for at, one in enumerate(self._findings) if one is finding)
        return self._names[place]

    def operation(self, op_id: str) -> str:
        """`operation-map_0`."""
        return self._operations[op_id]


def _name(*parts: str | None) -> str:
    words = (_NOT_IN_A_NAME.sub("-", part)[:_LONGEST] for part in parts if part)
    return "-".join(words)
