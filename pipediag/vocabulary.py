"""The closed lists of words in recordings, sessions and profiles, each spelled once.

The user's process imports it too: it imports nothing but `typing`.
"""

from __future__ import annotations

from typing import Literal

Bottleneck = Literal["input", "compute", "transfer", "overhead", "balanced", "inconclusive"]
VerdictSeverity = Literal["ok", "moderate", "high", "unknown"]
Confidence = Literal["high", "medium", "low"]
StepClass = Literal[
    "input_wait",
    "device_compute",
    "device_copy",
    "collective",
    "compile",
    "dispatch",
    "python",
    "device_wait",
    "unattributed",
]
FindingStatus = Literal["fail", "pass", "informative", "not-applicable", "inconclusive", "error"]
FindingSeverity = Literal["error", "warn", "info"]
FindingSubject = Literal["precondition", "correctness", "quality", "speed"]
"""What a finding is about. Correctness and quality are about results: no trial of speed settles
them."""
EffectOnResults = Literal[
    "same results",
    "same up to order or rounding",
    "changes a hyper-parameter",
    "mends results",
    "not known",
    "not safe here",
]
"""`mends results`: they change to what was meant. `not known`: only the author of a function knows
whether it always gives the same. `not safe here`: the function is known to be random or stateful,
so that the results would not be the same."""
Contention = Literal["lock", "cpu"]
"""What input's threads and the training loop fight for: the interpreter lock, or the CPUs."""
