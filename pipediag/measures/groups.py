"""The classes of the step, grouped into what can be the bottleneck."""

from __future__ import annotations

from collections.abc import Mapping

from pipediag.session.steps import Share
from pipediag.vocabulary import Group, StepClass

GROUPS: dict[Group, tuple[StepClass, ...]] = {
    "compute": ("device_compute",),
    "transfer": ("device_copy", "collective"),
    "overhead": ("dispatch", "python", "compile", "device_wait"),
}
"""Overhead is what the host does, or waits for, while no device computes or copies: XProf's kernel
launch and host compute, tracing and compiling again at every step, and synchronisation."""


def group_percents(breakdown: Mapping[StepClass, Share]) -> dict[Group, float]:
    """Percent of the step in each group, the largest first."""
    sums = {group: sum(breakdown[name].percent for name in GROUPS[group]) for group in GROUPS}
    return dict(sorted(sums.items(), key=lambda item: -item[1]))
