"""Work of the script's own before, between and after its steps."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pipediag.facts.limits import Threshold, bound
from pipediag.facts.names import exact_time, line_name, memory_size
from pipediag.facts.run_gain import gain_at_most
from pipediag.facts.step import UNEVEN
from pipediag.rules.relevance import EVERY, OFTEN, THRESHOLDS, weigh_rows
from pipediag.rules.rule import Place, Rule, known
from pipediag.session.findings import Finding
from pipediag.session.ledger import (
    IN_FRAMEWORK,
    OWN_LINE,
    READING,
    CallbackLine,
    EpochSeen,
    Run,
    RunPart,
    callback_words,
)
from pipediag.session.model import Session
from pipediag.vocabulary import RunPartName

NEIGHBOURS = 3
"""Lines no further apart count as one loop. Own choice: a blank line or a comment is between."""
_COMPREHENSION = re.compile(r"(\.<locals>\.)?<(listcomp|setcomp|dictcomp|genexpr)>")


@dataclass(frozen=True)
class Block:
    """Rows of the ledger that one change of the script would shorten together."""

    rows: tuple[RunPart, ...]

    @property
    def hottest(self) -> RunPart:
        return max(self.rows, key=lambda row: row.seconds)

    @property
    def place(self) -> Place:
        return self.hottest.file, self.hottest.line

    @property
    def seconds(self) -> float:
        return sum(row.seconds for row in self.rows)

    @property
    def count(self) -> int | None:
        return max((row.count for row in self.rows if row.count is not None), default=None)

    @property
    def of_framework(self) -> bool:
        """True if a framework's own code ran for most of it."""
        own = (row.seconds for row in self.rows if (row.what or "").endswith(IN_FRAMEWORK))
        return sum(own) > self.seconds / 2

    @property
    def what(self) -> str:
        return _own(self.hottest)

    @property
    def work(self) -> str:
        """Return its work and time as the start of a sentence."""
        whats = {READING: "reading this data set", OWN_LINE: "the work on these lines"}
        what = whats.get(self.what, self.what.removeprefix("in "))
        return f"{what[:1].upper()}{what[1:]} takes {self.seconds:.1f} s"


def blocks_of(rows: Iterable[RunPart]) -> list[Block]:
    """Return the blocks of these rows, the costliest first, without rows that have no name."""
    groups: dict[tuple[str, str, int | None], list[RunPart]] = defaultdict(list)
    last: RunPart | None = None
    first_line = 0
    for row in sorted(rows, key=lambda row: (row.file or "", row.line or 0)):
        what, line = _own(row), row.line or 0
        if what == OWN_LINE:
            beside = last is not None and last.file == row.file
            if last is None or not beside or line - (last.line or 0) > NEIGHBOURS:
                first_line = line
            last = row
        # A function's lines are one block, calls that read are one by line, and so are neighbours.
        place = {OWN_LINE: first_line, READING: line}.get(what)
        if what:
            groups[row.file or "", what, place].append(row)
    blocks = [Block(tuple(group)) for group in groups.values()]
    return sorted(blocks, key=lambda block: -block.seconds)


def _own(row: RunPart) -> str:
    """Return the work without whose code ran; a comprehension is a part of its function."""
    words = _COMPREHENSION.sub("", (row.what or "").removesuffix(IN_FRAMEWORK))
    return OWN_LINE if words == "in ``" else words


SHARE = Threshold("work after training", 15.0, "% of the run", "own choice: some is normal")
_script_rule = partial(Rule, id="script-work", needs=("loop", "run"))
_BESIDE: dict[RunPartName, tuple[str, str]] = {
    "before_training": (
        "Save what is prepared before training",
        "before training: save what is the same in every run (`np.save`, `dataset.save(path)`, the "
        "vocabulary that `adapt` learns), or read the data only once",
    ),
    "between_loops": (
        "Do repeated work once, before the first training",
        "between training loops: if its result is always the same, do it once, before the first",
    ),
    "after_training": (
        "Move the work after training to a separate script",
        "after training: do it in a separate script that reads the saved model, or do less of it",
    ),
}
"""Title and advice by the part of the run."""
WORK_BESIDE_TRAINING = _script_rule(
    title="Do the work beside the training once, or in another script",
    why="The machine trains nothing meanwhile, and the same data gives the same result each time.",
    fix="Keep what comes before training in files (`np.save`, `dataset.save(path)`). Do work "
    "between trainings once, before the first, and what follows in a script of its own.",
    thresholds=(*THRESHOLDS, SHARE),
    untried="A trial compares training steps, and this work is not among them.",
)


@WORK_BESIDE_TRAINING.found_by
def _check_work_beside_training(session: Session) -> Iterator[Finding]:
    run = known(session.run)
    for part, (title, how) in _BESIDE.items():
        rows, least_s = [row for row in run.parts if row.part == part], 0.0
        if part == "after_training":
            # What has no line then is the script's exit.
            rows = [row for row in rows if row.line is not None and run.scope == "run"]
            least_s = SHARE.value / 100.0 * run.whole_s
        for block in blocks_of(rows):
            if block.seconds >= least_s and not block.of_framework:
                yield WORK_BESIDE_TRAINING.weighed(
                    replace(weigh_rows(run, block.rows, block.seconds), speedup_at_most=None),
                    f"{block.work} {how}.",
                    title=title,
                    place=block.place,
                    evidence={"times": block.count},
                    part=part,
                )


SLOW_EPOCH_END = _script_rule(
    title="Do less work at the end of an epoch, or do it less often",
    why="Nothing is trained in the meantime, and plots and logs of every epoch are seldom needed.",
    fix="Do it every few epochs, or in a thread. Save uncompressed (`np.savez`), save only the "
    "weights, or save only improvements. With fewer checkpoints, a crash loses more epochs.",
    thresholds=(OFTEN, *THRESHOLDS),
    untried="A trial compares steps; only you know what can be skipped at the end of an epoch.",
)
_SELDOM = "a `save_freq` of several epochs' batches saves less often"
_OF_KERAS = {
    "ModelCheckpoint": "`save_best_only=True` or `save_weights_only=True` saves less, and "
    + _SELDOM,
    "BackupAndRestore": _SELDOM,
    "TensorBoard": "`histogram_freq=0` and `write_images=False` leave out what takes longest",
    "EarlyStopping": "`restore_best_weights=False` copies no weights",
}


@SLOW_EPOCH_END.found_by
def _check_slow_epoch_end(session: Session) -> Iterator[Finding]:
    run = known(session.run)
    # At its own line a loop that evaluates lets go of its iterator, which is no end of an epoch.
    others = [one for one in session.loops if one.role not in ("training", "reading")]
    evaluate = {(loop.file, loop.line) for loop in others if loop.kind != "keras"}
    train = {(loop.file, loop.line) for loop in session.loops if loop.role == "training"}
    ends = [row for row in run.parts if row.part == "epoch_end"]
    rows = [row for row in ends if row.line is None or (row.file, row.line) not in evaluate]
    named = [row for row in rows if row.what is not None and (row.file, row.line) not in train]
    found = [_of_epoch_end(session, run, block) for block in blocks_of(named)]
    yield from found
    # Where no callback and no line explains it, the loop's own does, where an epoch begins.
    rest, loop = [row for row in rows if row not in named], session.diagnosed_loop()
    weight = weigh_rows(run, rest, sum(row.seconds for row in rest))
    silent = all(finding.status == "pass" for finding in found)
    if silent and weight.status == "fail" and run.scope == "run" and loop is not None:
        yield SLOW_EPOCH_END.finding(
            "informative",
            "Make epochs longer (`repeat()` and `steps_per_epoch`): "
            f"{weight.evidence['taken_percent_of_run']:.0f} % of the run is spent between them, "
            "on the loop's own line.",
            place=(loop.file, loop.line),
            weight=weight,
            part="epoch_end",
        )


def _of_epoch_end(session: Session, run: Run, block: Block) -> Finding:
    count = block.count if block.count is not None else round(run.epochs or 0) or None
    if run.scope != "run":
        count = None  # a ledger of one epoch does not say how many there are
    if block.what == READING:
        how: str | None = (
            "count its batches with `cardinality()`, and keep what is computed from it"
        )
    elif block.hottest.file is None:
        how = {callback_words(name): how for name, how in _OF_KERAS.items()}.get(block.what)
    else:
        how = _rewritten(run, block)
    # The first and every fifth after it stay; all of what is not done every few epochs may go.
    left = 1.0 / EVERY if count is None else -(-count // EVERY) / max(1, count)
    if how is not None or left == 1.0:
        left = 0.0
    weight = replace(
        weigh_rows(run, block.rows, block.seconds),
        for_run=gain_at_most(run, block.seconds * (1.0 - left)),
        speedup_at_most=bound(1.0, 1.0 - left),
    )
    if count is not None and count < OFTEN.value:
        weight = replace(weight, status="pass")  # it can't be done less often
    less = (
        f"do it every few epochs (`if (epoch + 1) % {EVERY} == 0`), save uncompressed, save only "
        "the weights, or save only improvements; write or draw in a thread"
    )
    return SLOW_EPOCH_END.weighed(
        weight,
        f"{block.work} in total: {how or less}.",
        place=_place(session, block),
        evidence={"times": count},
        part="epoch_end",
    )


_ENOUGH = 20.0
"""Percent of its samples in one function. Own choice: less is not its work."""
_STORES = re.compile(r"save|write|dump|to_csv|to_pickle|plot|plt\.|fig\.")
"""Functions and lines that store or draw, which is done less often rather than in another way."""


class HotFunction(NamedTuple):
    """A function of the script's own that takes much of a callback, or of a loop that evaluates."""

    place: Place
    percent: float
    """Share of the samples of the callback or loop."""
    words: str
    code: str
    """Its line that was met most."""
    in_framework: bool


_ROW = re.compile(r"\b(float|int|bool)\(.*\[[a-z_]\w*\]|\[[a-z_]\w*\](\[[\w-]+\])?\.(numpy|item)\(")
"""A number from a row of something, by a variable: `float(scores[i])`, `scores[i].numpy()`."""


def remedy(hot: Iterable[HotFunction]) -> str | None:
    """Return how to do with arrays what these functions do with tensors; None if they don't."""
    if any(one.in_framework and _ROW.search(one.code) for one in hot):
        return (
            "convert tensors with `.numpy()` before the loop over their rows, as each `[i]` of a "
            "tensor starts an operation"
        )
    return None


def hot_functions(
    run: Run,
    what: str | None,
    loop_line: int | None = None,
    without: Container[Place] = frozenset[Place](),
) -> list[HotFunction]:
    """Return functions that take most of a row of the ledger and store or draw nothing; lines
    `without` don't count."""
    functions: dict[tuple[str, str, str], list[CallbackLine]] = defaultdict(list)
    for one in run.callback_lines:
        of_it = (one.what, one.loop_line) == (what, loop_line)
        of_it = of_it and (one.file, one.line) not in without
        if of_it and not _STORES.search(f"{one.function} {one.code}"):
            by = "TensorFlow or Keras" if one.in_framework else "Python"
            functions[by, one.file, one.function].append(one)
    return [
        HotFunction(
            (file, own[0].line),
            share,
            f"{share:.0f} % of it is {by} in `{function}` ({line_name(file, own[0].line)})",
            own[0].code or "",
            own[0].in_framework,
        )
        for (by, file, function), own in functions.items()
        if (share := sum(one.percent for one in own)) >= _ENOUGH
    ]


def _rewritten(run: Run, block: Block) -> str | None:
    """Return what to do about functions that take most of a callback."""
    found = hot_functions(run, block.what)
    how = remedy(found) or (
        "compute with whole arrays, or in one call for many rows, or do it less often"
    )
    return "; ".join([*(one.words for one in found), how]) if found else None


def _place(session: Session, block: Block) -> Place:
    """Return its line; for a callback of Keras', the call that it is given to."""
    if block.hottest.line is not None:
        return block.place
    loop = next((loop for loop in session.loops if loop.id == block.hottest.loop_id), None)
    loop = loop or session.diagnosed_loop()
    return (loop.file, loop.line) if loop is not None else (None, None)


# Memory and steps that grow from epoch to epoch

STRETCHES = Threshold(
    "rising stretches of epochs", 5.0, "stretches", "own choice: one in 120 rises by chance"
)
GROWN = Threshold(
    "growth of the memory", 5.0, "% of it", "measured: scripts that keep nothing grew by 2 %"
)
SLOWER = Threshold(
    "last stretch over the first", UNEVEN, "times", "own choice: runs of a script differ by a tenth"
)
_EVEN = 0.5
"""Part of the mean growth that every stretch has to have. Own choice: memory that is taken once,
as by a cache or an allocator, grows ever less."""
_Stretches = list[npt.NDArray[np.float64]]


def _epochs(session: Session) -> tuple[list[EpochSeen], str, Place]:
    """Return the epochs, none where they are few or of several trainings, in words, and a line."""
    epochs, loop = known(session.run).whole_epochs, known(session.diagnosed_loop())
    in_order = all(one.number < other.number for one, other in pairwise(epochs))
    if not in_order or len(epochs) < STRETCHES.value:
        return [], "", (None, None)
    span = f"epochs {epochs[0].number + 1} to {epochs[-1].number + 1}"
    return epochs, span, (loop.file, loop.line)


def _stretches(values: npt.ArrayLike) -> _Stretches:
    return np.array_split(np.array(values), int(STRETCHES.value))


def _rises(stretches: _Stretches) -> npt.NDArray[np.float64]:
    """Return by how much the median of each stretch lies above that of the one before."""
    return np.diff([float(np.median(one)) for one in stretches])


MEMORY_GROWTH = Rule(
    id="memory-growth",
    title="Find what keeps memory from epoch to epoch",
    why="The process's memory grew by about as much in each stretch of the epochs. A longer "
    "training ends when none is left, and the system then stops it without a message.",
    fix="Append `float(loss)` to lists and not tensors; call `model(x)` in place of `predict`; "
    "create models, datasets and iterators once. `tracemalloc` shows lines that keep objects.",
    needs=("loop", "run"),
    thresholds=(STRETCHES, GROWN),
    untried="Only a change of the script can tell what keeps it.",
)


@MEMORY_GROWTH.found_by
def _check_memory_growth(session: Session) -> Iterator[Finding]:
    (epochs, span, place), samples = _epochs(session), session.host_samples
    if not samples or not epochs:
        return
    at, rss = [one.at_ms for one in samples], [float(one.rss_bytes) for one in samples]
    held = np.interp([epoch.end_ms for epoch in epochs], at, rss)
    rises = _rises(_stretches(held))
    each = rises / _rises(_stretches([epoch.number for epoch in epochs]))
    little = held[-1] - held[0] < GROWN.value / 100.0 * held[0]
    if little or rises.min() <= 0 or each.min() < _EVEN * each.mean():
        return
    grown = float(np.median(each))
    left = next((one.available_bytes for one in reversed(samples) if one.available_bytes), None)
    advice = f"The process's memory grew by {memory_size(grown)} an epoch in {span}."
    if left:
        advice += f" {memory_size(left)} are left, enough for about {left / grown:,.0f} more."
    if any(op.kind == "cache" for op in session.ops):
        advice += " A cache that is still being filled grows so, too."
    evidence = {"memory_growth_bytes_per_epoch": grown, "memory_left_bytes": left}
    yield MEMORY_GROWTH.finding("informative", advice, place=place, evidence=evidence)


SLOWER_STEPS = Rule(
    id="slower-steps",
    title="Find what makes each epoch slower than the one before",
    why="Something that a step goes through grows: a list, a metric over all data so far, or a "
    "graph. A machine that gets hotter or busier slows steps as well.",
    fix="Keep sums in place of lists, reset metrics at the end of an epoch, and create functions, "
    "models and iterators once.",
    needs=("loop", "run"),
    thresholds=(STRETCHES, SLOWER),
    untried="Only a change of the script can tell what grows.",
)


@SLOWER_STEPS.found_by
def _check_slower_steps(session: Session) -> Iterator[Finding]:
    epochs, span, place = _epochs(session)
    stretches = _stretches([epoch.steps_ms for epoch in epochs])
    if not epochs or _rises(stretches).min() <= 0 or stretches[-1].min() <= stretches[0].max():
        return
    first, last = (float(np.median(stretches[end])) for end in (0, -1))
    if last >= SLOWER.value * first:
        yield SLOWER_STEPS.finding(
            "informative",
            f"An epoch's steps took {exact_time(first)} at the beginning of {span}, and "
            f"{exact_time(last)} at their end, {last / first:.2g}x as long, rising throughout.",
            place=place,
            evidence={"first_epochs_ms": first, "last_epochs_ms": last},
        )
