"""The machine that a benchmark ran on, in words for the head of its table."""

from __future__ import annotations

from pipediag.session.run import Environment


def machine_of(environment: Environment) -> str:
    """Processor, cores, memory and TensorFlow, as a session has them."""
    gpus = [device.name for device in environment.devices if device.kind.upper() != "CPU"]
    quota = f" (quota {environment.cpu_quota:g})" if environment.cpu_quota else ""
    return ", ".join(
        [
            environment.cpu_model or "unknown processor",
            f"{environment.cores} cores{quota}",
            f"{environment.memory_bytes / 2**30:.0f} GiB",
            " and ".join(gpus) or "no accelerator",
            f"TensorFlow {environment.tensorflow}",
            f"Python {environment.python}",
        ]
    )
