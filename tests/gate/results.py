"""Results of the gate for tests of its forms."""

from __future__ import annotations

from typing import Any

from pipediag.gate.result import Check, CheckOutcome, GateResult


def make_check(outcome: CheckOutcome = "fail", **overrides: Any) -> Check:
    values: dict[str, Any] = {
        "name": "missing-cache",
        "outcome": outcome,
        "severity": "error",
        "sentence": "Read again each epoch.",
        "file": "train.py",
        "line": 12,
    }
    return Check(**{**values, **overrides})


def make_result(*checks: Check, **overrides: Any) -> GateResult:
    values: dict[str, Any] = {"label": "train.py", "checks": checks, "script": "train.py"}
    return GateResult(**{**values, **overrides})


DIFF = """\
--- a/train.py
+++ b/train.py
@@ -1 +1,2 @@
 data = data.map(f)
+data = data.cache()
"""
FAILED_SCRIPT = make_result(script_failure="The script ended: killed.")
MIXED = make_result(
    make_check("pass", name="verdict"),
    make_check("warn", name="small-batch", severity="warn", line=None),
    make_check("inconclusive", name="retracing", file=None, line=None),
    make_check("fail"),
)
