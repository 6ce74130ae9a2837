"""One accelerator that the others wait for.

It applies to accelerators only: the executors of a CPU run no collectives.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean, median

from pipediag.facts.devices import NO_ACCELERATOR, accelerators, full_name, percent_of_span
from pipediag.facts.limits import Threshold
from pipediag.rules.rule import Meta
from pipediag.session.devices import DeviceActivity
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework, Scalar

WAITING = Threshold(
    "time in which the other devices wait",
    10.0,
    "% of the span, on average",
    "XProf's rule on barriers: cores that wait 10 % of the time or more",
)
Z_SCORE = Threshold(
    "modified z-score of the time in which a device does not wait, from three devices on",
    3.5,
    "times (0.6745 times the distance from the median is divided by the median deviation)",
    "XProf's rule on stragglers, after Iglewicz and Hoaglin",
)
RATIO = Threshold(
    "the same of one device over the others' median, with two devices or where the rest are alike",
    1.2,
    "times",
    "own choice: two devices have no spread to compare with",
)
META = Meta(
    id="device-straggler",
    name="Straggling device",
    title_failed="The other devices wait for one that takes longer",
    title_informative="Devices wait for each other",
    title_passed="No device keeps the others waiting",
    looks_at="For each accelerator, of one host or several, the time in which it waited for others "
    "(gaps while another was busy, and collectives that ran beside no kernel of its own), and what "
    "it did in the rest.",
    why="In synchronous training every step ends with a collective, and a collective ends when the "
    "last device joins it: the slowest one sets the pace of all.",
    edit="Even out what the devices get (shards, lengths of sequences, placement of tables), or "
    "repair what slows the one: its host's input, its clocks, another process on it.",
    cost="Other shards mean another order of the data.",
    bound="Amdahl: the span over the span less what the device works longer than the others' "
    "median.",
    needs=("devices",),
    thresholds=(WAITING, Z_SCORE, RATIO),
    severity="warn",
    effect_on_results="same up to order or rounding",
    frees=("collective",),
    untried="A trial in this process can't change what each device gets.",
)

_REMEDIES = {
    "compute": "It computes longer: give each replica equal batches and lengths, and look for a "
    "throttled or shared GPU (`nvidia-smi -q -d PERFORMANCE`).",
    "input": "It waits longer for its own input: give every worker as many examples and CPUs as "
    "the others; where whole files are dealt out, their number must be a multiple of the workers'.",
    "copy": "Its copies take longer: look at its PCIe link (`nvidia-smi topo -m`).",
}
_HOST_REMEDY = (
    "Its host keeps it waiting: compare CPU load, CPU affinity and callbacks of that worker (the "
    "chief often logs and saves alone)."
)

_ALL_TRAIN: Mapping[Framework, str] = {
    "tensorflow": "`tf.distribute.MirroredStrategy`",
    "jax": "A batch split over them (`jax.sharding.NamedSharding`)",
    "pytorch": "`DistributedDataParallel`",
}


def check_devices(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """One finding on the accelerator that waits least for the others."""
    gpus = accelerators(devices)
    if not gpus:
        return [META.finding("not-applicable", NO_ACCELERATOR)]
    if len(gpus) == 1:
        return [META.finding("not-applicable", "Only one accelerator took part.")]
    slow = min(gpus, key=_waiting_percent)
    others = [device for device in gpus if device is not slow]
    waiting = fmean(_waiting_percent(device) for device in others)
    excess = median(_own_percent(slow) - _own_percent(device) for device in others)
    evidence: dict[str, Scalar] = {
        "device": full_name(slow),
        "devices": len(gpus),
        "others_wait_percent_of_span": waiting,
        "device_waits_percent_of_span": _waiting_percent(slow),
        "device_busy_percent": slow.busy_percent,
        "others_median_busy_percent": median(device.busy_percent for device in others),
        "modified_z_score": _modified_z(slow, gpus),
        "works_longer_percent_of_span": excess,
    }
    if slow.host_late_ms is not None:
        evidence["host_begins_steps_late_ms"] = slow.host_late_ms
    if waiting < WAITING.value:
        return [META.finding("pass", "", evidence=evidence)]
    if not any(device.collective_ms for device in gpus):
        return [
            META.finding("informative", _no_collective(slow, others, framework), evidence=evidence)
        ]
    if not _stands_out(slow, others):
        advice = "They wait for each other alike: it is communication, and no single device."
        return [META.finding("informative", advice, evidence=evidence)]
    return [
        META.finding(
            "fail",
            f"{_waiters(others, 'wait')} {waiting:.0f} % of the time for {full_name(slow)}. "
            f"{_remedy(slow, others)}",
            title=_title(slow, others),
            evidence=evidence,
            speedup_at_most=_at_most(excess),
        )
    ]


def check(session: Session) -> list[Finding]:
    """The same on the session's profile."""
    return check_devices(session.devices)


def _waiters(others: Sequence[DeviceActivity], verb: str) -> str:
    """Who waits, with the verb: a single device is called by its name."""
    return f"{full_name(others[0])} {verb}s" if len(others) == 1 else f"The others {verb}"


def _title(slow: DeviceActivity, others: Sequence[DeviceActivity]) -> str | None:
    return f"{_waiters(others, 'wait')} for {full_name(slow)}" if len(others) == 1 else None


def _waiting_percent(device: DeviceActivity) -> float:
    gaps = device.causes_ms.get("collective", 0.0)
    return percent_of_span(device, gaps + (device.exposed_collective_ms or 0.0))


def _own_percent(device: DeviceActivity) -> float:
    return 100.0 - _waiting_percent(device)


def _modified_z(slow: DeviceActivity, gpus: Sequence[DeviceActivity]) -> float | None:
    """None with two devices, or where more than half are exactly alike."""
    own = [_own_percent(device) for device in gpus]
    middle = median(own)
    spread = median(abs(each - middle) for each in own)
    if len(gpus) < 3 or spread == 0:
        return None
    return 0.6745 * (_own_percent(slow) - middle) / spread


def _stands_out(slow: DeviceActivity, others: Sequence[DeviceActivity]) -> bool:
    score = _modified_z(slow, [slow, *others])
    if score is not None:
        return score > Z_SCORE.value
    usual = median(_own_percent(device) for device in others)
    return _own_percent(slow) >= RATIO.value * usual


def _parts(device: DeviceActivity) -> dict[str, float]:
    """Percent of the span by what the device did while it did not wait for others."""
    parts = {
        cause: percent_of_span(device, ms)
        for cause, ms in device.causes_ms.items()
        if cause != "collective"
    }
    copies = percent_of_span(device, device.exposed_copy_ms)
    parts["copy"] = parts.get("copy", 0.0) + copies
    waiting = percent_of_span(device, device.exposed_collective_ms)
    parts["compute"] = device.busy_percent - waiting - copies
    return parts


def _remedy(slow: DeviceActivity, others: Sequence[DeviceActivity]) -> str:
    usual = [_parts(device) for device in others]
    longer = {
        part: percent - median(each.get(part, 0.0) for each in usual)
        for part, percent in _parts(slow).items()
    }
    return _REMEDIES.get(max(longer, key=lambda part: longer[part]), _HOST_REMEDY)


def _no_collective(
    slow: DeviceActivity, others: Sequence[DeviceActivity], framework: Framework
) -> str:
    return (
        f"{_waiters(others, 'pause')} while {full_name(slow)} works, and no collective ran: parts "
        "of one model that take turns, or devices that are not used. "
        f"{_ALL_TRAIN[framework]} lets all of them train."
    )


def _at_most(excess: float) -> float | None:
    if excess >= 100.0:
        return None
    return round(100.0 / (100.0 - excess), 3)
