"""The worker of a job that a process is, as its launcher says in the environment."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass

_LAUNCHERS = (
    ("Slurm", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
    ("Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("Horovod", "HOROVOD_RANK", "HOROVOD_SIZE"),
    ("PMI", "PMI_RANK", "PMI_SIZE"),
    ("torchrun", "RANK", "WORLD_SIZE"),
)
"""Launchers with their variables for a process's rank and for the number of processes."""

WORKER_NAME = re.compile(r"(?:rank|worker|chief|master|evaluator|ps)-\d+")
"""Name of a worker's directory, below that of the job's report."""


@dataclass(frozen=True)
class Worker:
    """One of several processes that a launcher started to train together."""

    name: str
    """Name of its directory: `worker-1`, `chief-0`, `rank-3`."""
    rank: int | None
    """Rank; None where it does not train, as a parameter server."""
    size: int
    """Workers that train."""
    launcher: str
    servers: int = 0
    """Parameter servers of the job, which hold its variables."""


def worker_of(variables: Mapping[str, str] = os.environ) -> Worker | None:
    """Return which worker of a job a process with these variables is; None for one that is alone.
    `TF_CONFIG` goes first: launchers also start what trains independently."""
    found = _of_tensorflow(variables.get("TF_CONFIG", ""))
    if found is not None:
        return found
    for launcher, rank, size in _LAUNCHERS:
        numbers = variables.get(rank, ""), variables.get(size, "")
        if all(one.isdecimal() for one in numbers) and int(numbers[1]) > 1:
            return Worker(f"rank-{int(numbers[0])}", int(numbers[0]), int(numbers[1]), launcher)
    return None


def _of_tensorflow(text: str) -> Worker | None:
    try:
        config = json.loads(text)
        cluster, task = config["cluster"], config["task"]
        kind, index = str(task["type"]), int(task["index"])
        hosts = [(name, n) for name in cluster for n in range(len(cluster[name]))]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    train = sorted(one for one in hosts if one[0] in ("chief", "worker"))
    if len(hosts) < 2:
        return None
    rank = train.index((kind, index)) if (kind, index) in train else None
    servers = sum(name == "ps" for name, _ in hosts)
    return Worker(f"{kind}-{index}", rank, len(train), "TF_CONFIG", servers)
