"""The rules on devices, which a profile without a session can answer too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from pipediag.facts.order import in_order
from pipediag.rules.device import (
    device_straggler,
    exposed_host_copy,
    input_gap,
    launch_bound,
    mixed_precision,
    python_gap,
    small_kernels,
    sync_point,
)
from pipediag.rules.rule import DeviceRule
from pipediag.rules.running import guarded, yielding
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.vocabulary import Framework

DEVICE_RULES: tuple[DeviceRule, ...] = (
    input_gap,
    exposed_host_copy,
    small_kernels,
    launch_bound,
    sync_point,
    python_gap,
    device_straggler,
    mixed_precision,
)

_METAS = {rule.META.id: rule.META for rule in DEVICE_RULES}


def run_device_rules(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """Return what the device rules say of a profile without a session, first things first."""
    findings = [
        found
        for rule in DEVICE_RULES
        for found in guarded(rule.META, partial(rule.check_devices, devices, framework))
    ]
    return in_order(yielding(findings, _METAS))
