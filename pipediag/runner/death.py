"""What a death by a signal means, in a sentence, and dying the same way."""

from __future__ import annotations

import os
import resource
import signal

from pipediag.sensors.cgroup import MemoryShortage, memory_limit

GIB = 1 << 30


def describe_death(number: int, shortage: MemoryShortage | None) -> str:
    """One sentence on a process that signal `number` ended.

    `shortage`: whose memory ran out, where the control group counted such a kill meanwhile.
    """
    name = _name(number)
    if number == signal.SIGKILL and shortage is not None:
        return f"The kernel killed it ({name}) {_short_of(shortage)}."
    if number == signal.SIGKILL:
        return (
            f"It was killed ({name}), often the kernel's answer to memory running out: "
            "look for 'Out of memory' in the kernel log."
        )
    if number in (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGABRT):
        return f"It crashed in native code ({name})."
    return f"It was ended by {name}."


def _short_of(shortage: MemoryShortage) -> str:
    if shortage == "unknown":
        return "for want of memory"
    if shortage == "elsewhere":
        return (
            "for want of memory, and not at a limit of its control group: the machine's memory ran "
            "out, or that of a group above"
        )
    limit = memory_limit()
    allowed = f" of {limit / GIB:.1f} GiB" if limit else ""
    return f"because the control group ran out of its memory{allowed}"


def die_by(number: int) -> None:
    """End this process by the same signal, without a core file of ours beside the script's."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
