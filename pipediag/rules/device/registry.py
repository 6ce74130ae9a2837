"""The rules on devices, which a profile without a session can answer too."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

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
from pipediag.vocabulary import SEVERITY_ORDER, STATUS_ORDER, Framework

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
    """What the device rules say of a profile without a session, guarded alike.

    Order: by status and severity, then by the part of the span that each explains, then by gain.
    """
    findings = [
        found
        for rule in DEVICE_RULES
        for found in guarded(rule.META, partial(rule.check_devices, devices, framework))
    ]
    return sorted(yielding(findings, _METAS), key=_device_urgency)


def _device_urgency(finding: Finding) -> tuple[int, int, float, float]:
    share = finding.evidence.get(_METAS[finding.rule].share or "")
    return (
        STATUS_ORDER.index(finding.status),
        SEVERITY_ORDER.index(finding.severity),
        -share if isinstance(share, float | int) else 0.0,
        -(finding.speedup_at_most or 1.0),
    )
