"""Limits on sessions: `evaluate(session, load_config(None, rules))`."""

from pipediag.gate.config import GateConfig, load_config
from pipediag.gate.evaluation import evaluate, evaluate_runs
from pipediag.gate.result import Check, GateResult, worst_status

__all__ = [
    "Check",
    "GateConfig",
    "GateResult",
    "evaluate",
    "evaluate_runs",
    "load_config",
    "worst_status",
]
