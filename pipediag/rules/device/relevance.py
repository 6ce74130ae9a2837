"""When idle time of a device that has a cause on the host is worth acting on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipediag.facts.devices import cause_percent, percent_of_span
from pipediag.facts.limits import INPUT_GAPS, PERTURBED, Threshold
from pipediag.rules.rule import Meta
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import GapCause, Scalar

UNDER_FLOOR = Threshold(
    "idle in gaps too short to be looked into, where they are most of the idle time, above which "
    "their cause counts as unknown",
    15.0,
    "% of the device's span",
    "own choice, equal to the limit on idle time for launches",
)
SHORTEST_HOST_GAP_US = 50.0
"""Waits for input, for Python or for a result leave no shorter gaps, so none hides among them."""


def set_aside(
    meta: Meta,
    device: DeviceActivity,
    cause: GapCause,
    limit: Threshold,
    evidence: Mapping[str, Scalar],
    shortest_us: float = 0.0,
) -> Finding | None:
    """The finding where idle time of this cause is nothing to act on; None where it is.

    It takes less than the limit, as far as gaps were looked into, or the input comes first.
    """
    if cause_percent(device, cause) < limit.value:
        why = unexplained(device, shortest_us)
        return meta.finding("inconclusive" if why else "pass", why or "", evidence=evidence)
    waits = input_first_on(device)
    return meta.finding("informative", waits, evidence=evidence) if waits else None


def input_first_on(device: DeviceActivity) -> str | None:
    """Why time saved on the host would be waited away on this device, as a sentence, or None."""
    percent = cause_percent(device, "input")
    if percent < INPUT_GAPS.value:
        return None
    return (
        f"The device is idle for input {percent:.0f} % of its time, and would wait longer for what "
        "is saved elsewhere: deal with the input first."
    )


def unexplained(device: DeviceActivity, shortest_us: float = 0.0) -> str | None:
    """Why a cause of gaps from this length on can't be ruled out, as a sentence, or None."""
    percent = percent_of_span(device, device.noise_ms)
    mostly = 2 * device.noise_ms >= device.idle_ms
    if percent < UNDER_FLOOR.value or not mostly or device.gap_floor_us <= shortest_us:
        return None
    return (
        f"{percent:.3g} % of the time is idle in gaps under {_length(device.gap_floor_us)}, whose "
        "cause was not looked for; lower `--gap-floor` of `pipediag trace`."
    )


def _length(us: float) -> str:
    return f"{us / 1000:g} ms" if us >= 1000 else f"{us:g} us"


def unless_perturbed(meta: Meta, session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings; failed ones are in doubt where the profiler slowed the steps much.

    The profiler lengthens what the host does and hardly what a kernel takes, so it makes gaps. An
    edit is tried all the same, which needs no profiler.
    """
    ratio = session.perturbation.ratio if session.perturbation else None
    if ratio is None or ratio < PERTURBED.value:
        return list(findings)
    sentence = (
        f"The profiler made steps {ratio:.1f} times as long, so the host may hold the device up "
        "less without it."
    )
    return [
        meta.finding(
            "inconclusive" if finding.edit is None else "informative",
            sentence,
            evidence={
                **{key: finding.evidence[key] for key in _numbers(finding)},
                "profiled_step_ratio": ratio,
            },
            edit=finding.edit,
        )
        if finding.status == "fail"
        else finding
        for finding in findings
    ]


def _numbers(finding: Finding) -> list[str]:
    return [key for key in finding.evidence if key != "prediction_missing"]


def without_idle(device: DeviceActivity, saved_ms: float) -> float | None:
    """Amdahl's law: the span over the span without `saved_ms` of it."""
    left = device.span_ms - saved_ms
    if left <= 0:
        return None
    return round(max(1.0, device.span_ms / left), 3)
