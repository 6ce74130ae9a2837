"""How long some of the machine's CPUs worked, for whatever program."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

_IDLE, _DISK = 3, 4
_COUNTED = 8
"""Columns of a CPU in /proc/stat: user, nice, system, idle, waiting for the disk, interrupts, soft
interrupts, stolen by the hypervisor. Guests, behind them, are in the first two already."""


@dataclass(frozen=True)
class CpuTicks:
    """Clock ticks since some time in the past, summed over the CPUs."""

    whole: int
    idle: int
    """In which a CPU worked for no program and for no other virtual machine."""

    @property
    def busy(self) -> int:
        return self.whole - self.idle


def ticks_of(cpus: Collection[int], root: Path = Path("/")) -> CpuTicks | None:
    """Of these CPUs; None where the system does not show them."""
    names = {f"cpu{number}".encode() for number in cpus}
    try:
        # A line for each CPU: the file is longer than the beginnings that procfs reads.
        lines = (root / "proc/stat").read_bytes().splitlines()
    except OSError:
        return None
    each = [line.split()[1:] for line in lines if line.partition(b" ")[0] in names]
    ticks = [[int(one) for one in cpu[:_COUNTED]] for cpu in each if len(cpu) > _DISK]
    whole = sum(map(sum, ticks))
    return CpuTicks(whole, sum(cpu[_IDLE] + cpu[_DISK] for cpu in ticks)) if whole else None
