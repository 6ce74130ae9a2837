"""A device that is idle because the next batch is not there.

It holds for a CPU too, whose executor's operations stand for a device: GetNext blocks the consumer
there in the same way.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipediag.facts.devices import (
    NO_DEVICE,
    accelerators,
    accelerators_or_cpus,
    cause_percent,
    full_name,
    held_up,
    idle_evidence,
    longest_doing,
    worst,
)
from pipediag.facts.limits import INPUT_BOUND_PERCENT, INPUT_FINE_PERCENT, Threshold
from pipediag.rules.bounds import ceiling
from pipediag.rules.device.iterator_advice import advice_for
from pipediag.rules.device.prefetch import prefetched_to
from pipediag.rules.device.relevance import (
    SHORTEST_HOST_GAP_US,
    UNDER_FLOOR,
    unexplained,
    without_idle,
)
from pipediag.rules.model_edits import PROFILE_ALONE
from pipediag.rules.relevance import weigh_input
from pipediag.rules.rule import Meta, with_edit
from pipediag.session.devices import DeviceActivity
from pipediag.session.edits import Edit
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.vocabulary import Framework

IDLE = Threshold(
    "idle for input",
    INPUT_FINE_PERCENT,
    "% of the device's span",
    "XProf's input-pipeline analysis: from 5 % moderately input-bound",
)
HIGHLY = Threshold(
    "idle for input that is called the bottleneck",
    INPUT_BOUND_PERCENT,
    "% of the device's span",
    "XProf's input-pipeline analysis: from 20 % highly input-bound",
)
META = Meta(
    id="input-gap",
    name="Input gaps",
    title_failed="The device is idle while it waits for input",
    title_informative="The profile shows gaps for input",
    title_passed="The device hardly waits for input",
    looks_at="The time in which a device had nothing to do while the training loop was blocked in "
    "GetNext, and which iterator of the pipeline worked longest in those gaps. On a machine "
    "without an accelerator the executor stands for the device.",
    why="No kernel can run before its batch is there; the pipeline sets the pace.",
    edit="Speed up the iterator that is named: parallel calls, reading files in parallel, cache, "
    "fewer and larger elements.",
    cost="More CPU or more memory for the pipeline.",
    bound="Amdahl: the device's span over the span without these gaps, which is what an input "
    "that costs nothing would give; within a session never beyond its ceiling.",
    needs=("devices",),
    thresholds=(IDLE, HIGHLY, UNDER_FLOOR),
    severity="warn",
    effect_on_results="same results",
    frees=("input_wait",),
    sees_class_only=True,
    tried_when_informing=True,
)

_UNTRIED = (
    "It says that input is late, not what would mend it: that is tried with the findings on the "
    "pipeline."
)
_LOADER: Mapping[Framework, str] = {
    "jax": "Load and transform batches in worker processes, several steps ahead (`grain`, or "
    "tf.data with `num_parallel_calls` and `.prefetch`).",
    "pytorch": "Give the DataLoader `num_workers` (half the cores are a start), "
    "`persistent_workers=True` and a larger `prefetch_factor`; make `__getitem__` cheaper.",
}
_WORKERS = "_MultiProcessingDataLoaderIter"
_MORE_WORKERS = (
    "The DataLoader has workers already: give it more `num_workers` while cores are free, a larger "
    "`prefetch_factor` where batches differ in cost, and make `__getitem__` cheaper."
)


@dataclass(frozen=True)
class _Behind:
    """The operation that worked longest in the gaps, as far as it is known."""

    op_id: str | None = None
    file: str | None = None
    line: int | None = None
    iterator: str | None = None
    ms: float = 0.0


def check_devices(
    devices: Sequence[DeviceActivity], framework: Framework = "tensorflow"
) -> list[Finding]:
    """One finding on the device that waits longest for input."""
    device = worst(accelerators_or_cpus(devices), lambda each: cause_percent(each, "input"))
    if device is None:
        return [META.finding("not-applicable", NO_DEVICE)]
    percent = cause_percent(device, "input")
    behind = _behind(device)
    buffered = _buffered(device)
    evidence = {
        **idle_evidence(device, "input"),
        "iterator": behind.iterator,
        "iterator_gap_ms": behind.ms if behind.iterator or behind.line else None,
        "buffered_elements": buffered,
    }
    fails = percent >= IDLE.value
    if not fails and (why := unexplained(device, SHORTEST_HOST_GAP_US)):
        return [META.finding("inconclusive", why, evidence=evidence)]
    return [
        META.finding(
            "fail" if fails else "pass",
            _advice(device, behind, buffered, framework) if fails else "",
            op_id=behind.op_id,
            place=(behind.file, behind.line),
            evidence=evidence,
            speedup_at_most=without_idle(device, device.causes_ms.get("input", 0.0)),
            untried=PROFILE_ALONE,
        )
    ]


def check(session: Session) -> list[Finding]:
    """The same; where steps without the profiler hardly wait for input, it only informs."""
    (finding,) = check_devices(session.devices)
    if finding.status != "fail":
        return [finding]
    if session.breakdown is None:
        return [with_edit(META, finding, _edit(session), _UNTRIED)]
    weight = weigh_input(session)
    return [
        META.finding(
            weight.status,
            finding.advice if weight.status == "fail" else weight.sentence,
            op_id=finding.op_id,
            place=(finding.file, finding.line),
            evidence={**finding.evidence, **weight.evidence},
            speedup_at_most=_within_ceiling(session, finding.speedup_at_most),
            edit=_edit(session) if weight.worth_trying else None,
            untried=_UNTRIED,
        )
    ]


def _edit(session: Session) -> Edit | None:
    """Return batches handed over ahead, for the accelerator that waits longest."""
    device = worst(accelerators(session.devices), lambda each: cause_percent(each, "input"))
    return None if device is None else prefetched_to(session, device, META.id)


def _within_ceiling(session: Session, speedup: float | None) -> float | None:
    at_most = ceiling(session)
    return None if at_most is None or speedup is None else min(speedup, at_most)


def _behind(device: DeviceActivity) -> _Behind:
    spent: dict[_Behind, float] = defaultdict(float)
    for gap, ms in held_up(device, "input"):
        spent[_Behind(gap.op_id, gap.file, gap.line, gap.iterator)] += ms
    known = {key: ms for key, ms in spent.items() if key != _Behind()}
    if not known:
        return _Behind()
    top = max(known, key=lambda key: known[key])
    return _Behind(top.op_id, top.file, top.line, top.iterator, known[top])


def _buffered(device: DeviceActivity) -> float | None:
    """Elements in the buffer as a gap began, each gap counted by its length.

    None where it was read for less than half of them: the few would speak for the rest.
    """
    held = [(gap.buffered_elements, ms) for gap, ms in held_up(device, "input")]
    known = [(elements, ms) for elements, ms in held if elements is not None]
    total = sum(ms for _, ms in known)
    if not total or 2 * total < sum(ms for _, ms in held):
        return None
    return sum(elements * ms for elements, ms in known) / total


def _advice(
    device: DeviceActivity, behind: _Behind, buffered: float | None, framework: Framework
) -> str:
    percent = cause_percent(device, "input")
    degree = "is what limits it" if percent >= HIGHLY.value else "costs it time"
    where = f" at {behind.file}:{behind.line}" if behind.file and behind.line else ""
    who = f" `{behind.iterator}`{where} works longest meanwhile." if behind.iterator else ""
    return (
        f"{_remedy(device, behind.iterator, framework)} {full_name(device)} is idle for input "
        f"{percent:.0f} % of the time: input {degree}.{who}"
        f"{_buffer_sentence(buffered)}"
    )


def _remedy(device: DeviceActivity, iterator: str | None, framework: Framework) -> str:
    """Return the advice for the iterator of tf.data, which may feed any framework, or the loader's.

    PyTorch's profiler names the class that hands over batches, which differs with workers.
    """
    fetching = longest_doing(device, "input")
    if iterator is None and fetching is not None and _WORKERS in fetching[0]:
        return _MORE_WORKERS
    return advice_for(iterator) if iterator else _LOADER.get(framework, advice_for(None))


def _buffer_sentence(buffered: float | None) -> str:
    if buffered is None:
        return ""
    return f" The prefetch buffer held {buffered:.1f} elements as the gaps began, on average."
