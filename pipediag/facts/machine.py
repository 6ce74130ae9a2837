"""The resources of the process: CPUs, threads for tf.data, memory, and accelerators."""

from __future__ import annotations

from collections.abc import Iterable

from pipediag.facts.pipeline import option
from pipediag.session.model import Environment, Host, Session
from pipediag.session.pipeline import Operation
from pipediag.session.recording import Device

_OTHERS_RATIO = 0.15
"""Part of the CPUs. Own choice: pipediag and a system's housekeeping take some percent."""
_IDLE_RATIO = 0.1
"""Part of the CPUs. Own choice: where more are idle, what others take is not missed."""


def cores_allowed(environment: Environment) -> float:
    """Return the CPUs that affinity and the control group's quota leave."""
    quota = environment.cpu_quota
    return min(float(environment.cores), quota) if quota else float(environment.cores)


def cpus(session: Session) -> float:
    """Return the CPUs that the process may use, as sampled or else as the machine says."""
    if session.host is not None:
        return session.host.cores_allowed
    return cores_allowed(session.environment)


def missed_cores(host: Host | None) -> float | None:
    """Return the CPUs that other programs took from the script; None for none, or if not known.

    Where a quota keeps the script from more, CPUs are idle, and others take nothing from it.
    """
    if host is None or host.cores_of_others is None or host.cores_idle is None:
        return None
    others, allowed = host.cores_of_others, host.cores_allowed
    if others < _OTHERS_RATIO * allowed or host.cores_idle >= _IDLE_RATIO * allowed:
        return None
    return others


def pool_size(session: Session, op: Operation) -> int | None:
    """Return the threads that this map's calls share, one a CPU unless the dataset asks for other;
    None where there is no limit."""
    if op.parameters.get("use_unbounded_threadpool"):
        return None
    private = option(session.pipeline, "private_threadpool_size")
    if private is not None and isinstance(private[1], int) and private[1] > 0:
        return private[1]
    return max(1, int(cpus(session)))


def on_accelerator(devices: Iterable[Device]) -> bool:
    """Return True if one of TensorFlow's devices is no CPU."""
    return any(device.kind.upper() != "CPU" for device in devices)


def available_bytes(session: Session) -> int:
    """Return the memory that was free for the script; all of the machine's if not sampled."""
    host = session.host
    if host is not None and host.available_bytes is not None:
        return host.available_bytes
    return session.environment.memory_bytes
