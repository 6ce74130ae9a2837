"""Other processes that train along, each of whose steps waits for the same step of all others.

A step that one of them makes alone waits for good, or passes for a later one of theirs.
"""

from __future__ import annotations

import os
import sys

from pipediag.capture.runtime import Runtime

_EXCHANGING = ("horovod", "mpi4py")
"""Through these they talk in their steps; a launcher alone may start what is independent."""
_LAUNCHED = ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS")
"""Where a launcher says how many processes it has started."""


def train_along(runtime: Runtime) -> str | None:
    """Why no step may be made beside the script's own, as the end of a sentence; None where the
    process trains for itself.

    By what a script has imported or set up: operations that add up what several devices have are
    the same whether these belong to one process or to several.
    """
    found = runtime.other_processes() or _launched_together() or _in_a_group()
    return found and (
        f"other processes train along ({found}) and would wait for steps that this one makes alone"
    )


def _launched_together() -> str | None:
    package = next((name for name in _EXCHANGING if name in sys.modules), None)
    if package is None:
        return None
    for variable in _LAUNCHED:
        size = os.environ.get(variable, "")
        if size.isdecimal() and int(size) > 1:
            return f"{package} in one of {size} processes, by {variable}"
    return None


def _in_a_group() -> str | None:
    """Of those that Keras's other backends join."""
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        size = torch.get_world_size()
        if size > 1:
            return f"torch.distributed has {size} processes"
    jax = sys.modules.get("jax._src.distributed")
    size = getattr(getattr(jax, "global_state", None), "num_processes", None) or 1
    return f"jax.distributed has {size} processes" if size > 1 else None
