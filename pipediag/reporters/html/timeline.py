"""What the page's timeline draws: lanes over one clock, as columns of whole microseconds.

The script of the page reads them. Where they would be too large, steps are taken together and the
shortest gaps are left out, and the drawing says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from pipediag.encoding.json import compact
from pipediag.facts.profile_clock import profile_clock
from pipediag.facts.run_parts import RUN_PART
from pipediag.facts.trial_clock import block_start_ms
from pipediag.reporters.html.packed import packed
from pipediag.reporters.words import labels
from pipediag.reporters.words.quantities import number
from pipediag.reporters.words.trial_outcomes import change
from pipediag.session.devices import DeviceGap
from pipediag.session.model import Session
from pipediag.session.steps import StepRow
from pipediag.vocabulary import BASE, GAP_CAUSES, POOLS, Pool

_COARSEST = 1 << 12
_MOST_DEVICES = 4
_LONGEST_WORDS = 160
_WINDOW_COLOURS = {
    "warmup": "unattributed",
    "baseline": "device_compute",
    "stacks": "python",
    "profile": "collective",
    "repeat": "dispatch",
}
_CAUSE_COLOURS = {
    "input": "input_wait",
    "compile": "compile",
    "copy": "device_copy",
    "collective": "collective",
    "sync": "device_wait",
    "launch": "dispatch",
    "python": "python",
    "queued": "device_compute",
}
_POOL_COLOURS: dict[Pool, str] = {
    "tf_data": "input_wait",
    "eigen": "device_compute",
    "python_main": "python",
    "python_other": "compile",
    "others": "unattributed",
}
_UNKNOWN = "unattributed"


@dataclass(frozen=True)
class Box:
    """A stretch of time in a lane."""

    start_ms: float
    duration_ms: float
    colour: str
    """A class of the style sheet."""
    words: str
    inner_ms: float = 0.0
    """From its start: in a step the wait for input."""


def packed_timeline(session: Session, budget_bytes: int) -> str | None:
    """The lanes, packed for the page; None where there is nothing to draw, or no room for it."""
    coarse = 1
    while coarse <= _COARSEST:
        lanes = list(_lanes(session, coarse))
        if not lanes:
            return None
        content = {"lanes": lanes, "views": _views(session)}
        data = packed(compact(content))
        if len(data) <= budget_bytes:
            return data
        coarse *= 2
    return None


def _lanes(session: Session, coarse: int) -> Iterator[dict[str, Any]]:
    yield from _boxes("The run", _run_boxes(session, coarse))
    yield from _boxes("Windows of the measurement", _window_boxes(session))
    yield from _boxes(_steps_title(session, coarse), _step_boxes(session.step_rows, coarse))
    yield from _boxes("Trials, base and edits by turns", _trial_boxes(session))
    yield from _gap_lanes(session, coarse)
    yield from _host_lanes(session, coarse)


def _boxes(title: str, boxes: Iterable[Box]) -> Iterator[dict[str, Any]]:
    listed = sorted(boxes, key=lambda box: box.start_ms)
    if not listed:
        return
    colours = list(dict.fromkeys(box.colour for box in listed))
    words = list(dict.fromkeys(box.words for box in listed))
    colour_at = {colour: at for at, colour in enumerate(colours)}
    words_at = {one: at for at, one in enumerate(words)}
    starts = [_us(box.start_ms) for box in listed]
    lengths = [_us(box.duration_ms) for box in listed]
    # From the end of the box before: what follows at once takes a zero, and no room.
    ends = [start + length for start, length in zip(starts, lengths, strict=True)]
    lane: dict[str, Any] = {
        "title": title,
        "kind": "boxes",
        "starts": [start - end for start, end in zip(starts, [0, *ends], strict=False)],
        "lengths": lengths,
        "colours": colours,
        "colour": [colour_at[box.colour] for box in listed],
        "words": words,
        "word": [words_at[box.words] for box in listed],
    }
    if any(box.inner_ms for box in listed):
        lane["inner"] = [_us(box.inner_ms) for box in listed]
    yield lane


def _run_boxes(session: Session, coarse: int) -> Iterator[Box]:
    spans = session.run.spans if session.run else []
    for span in _longest(spans, coarse):
        if span.part is None:
            yield Box(span.start_ms, span.duration_ms, _UNKNOWN, "pipediag's own work")
            continue
        name = RUN_PART[span.part]
        words = f"{name}: {span.what}" if span.what else name
        yield Box(span.start_ms, span.duration_ms, f"part-{span.part}", _short(words))


def _window_boxes(session: Session) -> Iterator[Box]:
    for window in session.windows:
        words = f"{window.kind}, {number(window.steps)} steps"
        colour = _WINDOW_COLOURS.get(window.kind, _UNKNOWN)
        yield Box(window.start_ms, window.duration_ms, colour, words)


def _steps_title(session: Session, coarse: int) -> str:
    title = "Steps, the wait for input in each"
    taken = f"; {coarse} at a time, {number(len(session.step_rows))} in all"
    return title + (taken if coarse > 1 else "")


def _step_boxes(rows: Sequence[StepRow], coarse: int) -> Iterator[Box]:
    for _, block in groupby(rows, key=lambda row: (row.window, row.block)):
        listed = list(block)
        for first in range(0, len(listed), coarse):
            taken = listed[first : first + coarse]
            end_ms = taken[-1].start_ms + taken[-1].duration_ms
            yield Box(
                taken[0].start_ms,
                end_ms - taken[0].start_ms,
                "device_compute",
                f"{taken[0].window} step",
                sum(row.input_wait_ms or 0.0 for row in taken),
            )


def _trial_boxes(session: Session) -> Iterator[Box]:
    runs = [session.trials] if session.trials else []
    for run in (*runs, *session.evaluation_trials):
        for block in run.blocks:
            start_ms = block_start_ms(run, block)
            if start_ms is None:
                continue
            colour = "unattributed" if block.arm == BASE else "dispatch"
            rate = f"{number(round(block.examples_per_s))} examples per second"
            words = _short(f"{_arm(session, block.arm)}: {rate}")
            yield Box(start_ms, block.duration_ms, colour, words)


def _arm(session: Session, arm: str) -> str:
    if arm == BASE:
        return "as written"
    return " and ".join(change(session, edit_id) for edit_id in arm.split(" + "))


def _gap_lanes(session: Session, coarse: int) -> Iterator[dict[str, Any]]:
    clock = profile_clock(session)
    if clock is None:
        return
    for device in sorted(session.devices, key=lambda one: -one.idle_ms)[:_MOST_DEVICES]:
        kept = _longest(device.gaps, coarse)
        for cause in _in_order({gap.cause for gap in kept}):
            title = f"{_short(device.name)} idle: {labels.gap_cause(cause)}"
            yield from _boxes(
                title,
                (
                    Box(
                        clock.run_ms(gap.start_ms),
                        gap.duration_ms,
                        _CAUSE_COLOURS.get(cause, _UNKNOWN),
                        _short(f"{labels.gap_cause(cause)}{_at(gap)}"),
                    )
                    for gap in kept
                    if gap.cause == cause
                ),
            )


def _in_order(causes: set[str]) -> list[str]:
    known = [cause for cause in GAP_CAUSES if cause in causes]
    return [*known, *sorted(causes - set(known))]


def _at(gap: DeviceGap) -> str:
    step = f", step {gap.step} of the profile" if gap.step is not None else ""
    return f" ({gap.op_id}){step}" if gap.op_id else step


def _host_lanes(session: Session, coarse: int) -> Iterator[dict[str, Any]]:
    samples = session.host_samples[::coarse]
    if len(samples) < 2:
        return
    times = _differences([_us(sample.at_ms) for sample in samples])
    pools = [pool for pool in POOLS if any(one.pools_percent.get(pool) for one in samples)]
    if pools:
        yield {
            "title": "CPU by pool, in percent of a core",
            "kind": "areas",
            "times": times,
            "series": [
                {
                    "title": labels.POOL[pool],
                    "colour": _POOL_COLOURS[pool],
                    "values": [round(one.pools_percent.get(pool, 0.0)) for one in samples],
                }
                for pool in pools
            ],
            "unit": "%",
        }
    yield {
        "title": "Resident memory",
        "kind": "areas",
        "times": times,
        "series": [
            {
                "title": "Resident memory",
                "colour": "device_copy",
                "values": [round(one.rss_bytes / 2**20) for one in samples],
            }
        ],
        "unit": "MiB",
    }


def _views(session: Session) -> list[dict[str, Any]]:
    """Stretches that are worth a look: the first window of each kind."""
    first = {window.kind: window for window in reversed(session.windows) if window.duration_ms > 0}
    return [
        {"title": kind, "start": _us(one.start_ms), "length": _us(one.duration_ms)}
        for kind, one in sorted(first.items(), key=lambda item: item[1].start_ms)
    ]


def _longest(items: Sequence[Any], coarse: int) -> list[Any]:
    """That part of them, in their order; all of a few."""
    most = max(200, len(items) // coarse)
    if len(items) <= most:
        return list(items)
    kept = sorted(range(len(items)), key=lambda at: -items[at].duration_ms)[:most]
    return [items[at] for at in sorted(kept)]


def _differences(values: Sequence[int]) -> list[int]:
    """The first, then how much each is above the one before: small numbers pack well."""
    return [value - before for before, value in zip([0, *values], values, strict=False)]


def _us(ms: float) -> int:
    return round(ms * 1000)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_WORDS else text[: _LONGEST_WORDS - 1] + "…"
