"""The cluster of TensorFlow's that a process belongs to: several workers, parameter servers."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

_TRAINING_JOBS = ("chief", "master", "worker", "ps")
"""An evaluator reads what the others have saved, and waits for none of their steps."""


def other_tasks() -> str | None:
    """What tells that tasks of other processes train along; None where there are none."""
    return _by_config() or _by_context()


def _by_config() -> str | None:
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
        if config.get("task", {}).get("type") == "evaluator":
            return None
        jobs = config.get("cluster", {})
        tasks = sum(len(jobs[job]) for job in _TRAINING_JOBS if job in jobs)
    except (ValueError, TypeError, AttributeError):
        return None  # of another form than TensorFlow's, which would refuse it
    return f"TF_CONFIG names {tasks} tasks" if tasks > 1 else None


def _by_context() -> str | None:
    """A strategy over several workers connects to them, whatever it knows them by."""
    module = sys.modules.get("tensorflow.python.eager.context")
    context = module.context() if module is not None else None
    known = (getattr(context, name, None) for name in ("_server_def", "_collective_ops_server_def"))
    tasks = max((_tasks_of(one) for one in known if one is not None), default=1)
    return f"TensorFlow is connected to a cluster of {tasks} tasks" if tasks > 1 else None


def _tasks_of(server: Any) -> int:
    return sum(len(job.tasks) for job in server.cluster.job)
