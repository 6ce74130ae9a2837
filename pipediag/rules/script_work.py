"""Work of the script's own before, between and after its steps."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from pipediag.facts.limits import Threshold, bound
from pipediag.facts.run import whole_in_words
from pipediag.facts.run_gain import gain_at_most
from pipediag.rules.relevance import SHORT, THRESHOLDS, seen_or_not, weigh_rows
from pipediag.rules.rule import Meta, Place
from pipediag.session.findings import Finding
from pipediag.session.ledger import (
    AFTERWARDS,
    AN_EPOCHS_END,
    IN_FRAMEWORK,
    OWN_LINE,
    READING,
    Run,
    RunPart,
    callback_words,
)
from pipediag.session.model import Session
from pipediag.vocabulary import RunPartName

NEIGHBOURS = 3
"""Lines of a file that lie no further apart count as one loop of it. Own choice: between two of
them lies a blank line or a comment."""
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
        """How often it came, where a row says so."""
        return max((row.count for row in self.rows if row.count is not None), default=None)

    @property
    def in_framework_s(self) -> float:
        """The seconds in which a framework's own code ran."""
        return sum(row.seconds for row in self.rows if (row.what or "").endswith(IN_FRAMEWORK))

    @property
    def what(self) -> str:
        return _own(self.hottest.what or "")

    @property
    def passes(self) -> str:
        return f"{self.seconds:.1f} s pass {'at this line' if self.what == OWN_LINE else self.what}"


def blocks_of(rows: Iterable[RunPart]) -> list[Block]:
    """Return the blocks of these rows, the costliest first, without rows that have no name."""
    named: dict[tuple[str | None, str, int | None], list[RunPart]] = {}
    lines: list[RunPart] = []
    for row in rows:
        what = None if row.what is None else _own(row.what)
        if what == OWN_LINE:
            lines.append(row)
        elif what is not None:
            line = row.line if what == READING else None
            named.setdefault((row.file, what, line), []).append(row)
    blocks = [Block(tuple(group)) for group in (*named.values(), *_neighbours(lines))]
    return sorted(blocks, key=lambda block: -block.seconds)


def _own(what: str) -> str:
    """Return the work without whose code ran; a comprehension is a part of its function."""
    words = _COMPREHENSION.sub("", what.removesuffix(IN_FRAMEWORK))
    return OWN_LINE if words == "in ``" else words


def _neighbours(lines: Iterable[RunPart]) -> list[list[RunPart]]:
    groups: list[list[RunPart]] = []
    for row in sorted(lines, key=lambda row: (row.file or "", row.line or 0)):
        last = groups[-1][-1] if groups else None
        same = last is not None and last.file == row.file
        if last is not None and same and (row.line or 0) - (last.line or 0) <= NEIGHBOURS:
            groups[-1].append(row)
        else:
            groups.append([row])
    return groups


OFTEN = Threshold(
    "how often it comes", 3.0, "times", "own choice: twice can't be done every few epochs"
)
EVERY = 5
"""Epochs of which one is kept, in what is said of fewer. Own choice."""
LATE = Threshold(
    "work before a training of unknown length", 5.0, "s, and an epoch", "own choice: each run waits"
)
SHARE = Threshold(
    "what follows the training", 15.0, "% of the run", "own choice: results are exported once"
)
A_SECOND = Threshold("what follows the training", 1.0, "s", "own choice: nobody waits for less")
SLOW_START = Meta(
    id="script-work",
    name="Slow start",
    title_failed="Keep what is prepared before the training from run to run",
    title_passed="Training starts soon",
    why="What is parsed or computed from the same input comes out the same, and each run waits.",
    edit="Keep the result in a file: arrays as `.npy`, what a tf.data pipeline makes with "
    "`dataset.save(path)`, what `adapt` learns as a vocabulary or statistics.",
    cost="A file that has to be made anew when its input or the code changes.",
    needs=("loop", "run"),
    thresholds=(*THRESHOLDS, LATE),
    untried="It comes before the training, and a trial compares steps.",
)
SLOW_EPOCH_END = replace(
    SLOW_START,
    name="Slow end of the epoch",
    title_failed="Do less, or less often, at the end of an epoch",
    title_passed="Epochs follow each other without a long pause",
    why="Nothing is trained meanwhile, and plots and logs of every epoch are seldom looked at.",
    edit="Do it every few epochs; save uncompressed (`np.savez`), only the weights, or only what "
    "is better than before; write in a thread.",
    cost="After a crash, more epochs are lost. Uncompressed files are larger.",
    thresholds=(OFTEN, *THRESHOLDS),
    untried="Only you know what may be left out, and a trial compares steps.",
)
WORK_AFTER_TRAINING = replace(
    SLOW_START,
    name="Work after the training",
    title_failed="Move work behind the training into a script of its own",
    title_passed="The run ends soon after its training",
    why="The machine that trains waits for work that a next training could run beside.",
    edit="A script of its own that reads the saved model, or less of it.",
    cost="Another script to call, and a saved model between the two.",
    thresholds=(SHARE, A_SECOND, SHORT),
    untried="It comes after the training, and a trial compares steps.",
)
WORK_BETWEEN_TRAININGS = replace(
    SLOW_START,
    name="Work between trainings",
    title_failed="Do once what each training waits for anew",
    title_passed="Trainings follow each other without a long pause",
    why="What is computed from the same data comes out the same, and all trainings wait for it.",
    edit="Make it once, before the first training, and let each take its part of it.",
    cost="What is kept for all trainings stays in memory.",
    thresholds=THRESHOLDS,
    untried="It lies between the trainings, and a trial compares steps.",
)
_UNKNOWN_LENGTH = "The ledger is of a part of the training, whose whole length is not known."


def _of_blocks(
    meta: Meta,
    run: Run,
    part: RunPartName,
    blocks: Iterable[Block],
    advice: Callable[[Block], str],
    to_framework: str,
) -> Iterator[Finding]:
    """Yield a finding on each piece of work that takes a notable part of the run.

    Args:
        to_framework: what to say where a framework's own code runs for most of a piece.
    """
    for block in blocks:
        weight = weigh_rows(run, block.rows, block.seconds)
        if weight.status == "fail" and block.in_framework_s > block.seconds / 2:
            most = "Most of it is the framework's own work for this line"
            weight = replace(weight, status="informative", sentence=f"{most}{to_framework}")
        times = {} if block.count is None else {"times": block.count}
        if weight.status != "pass":
            yield meta.finding(
                weight.status,
                weight.before(advice(block)),
                place=block.place,
                evidence={**weight.evidence, **times},
                part=part,
                for_run=weight.for_run,
            )


# Before the training


def check_slow_start(session: Session) -> list[Finding]:
    """Return a finding on each piece of work that takes a notable part of the run."""
    run = session.run
    assert run is not None
    rows = run.parts if run.scope == "run" else run.seen
    blocks = blocks_of(row for row in rows if row.part == "before_training")
    if run.scope == "run":
        to_framework = ". To build a model takes what it takes; what prepares data could be kept."
        found = _of_blocks(
            SLOW_START,
            run,
            "before_training",
            blocks,
            lambda block: _keep_it(session, block),
            to_framework,
        )
        return list(found) or [SLOW_START.finding("pass", part="before_training")]
    # By its seconds alone, where nobody knows how long all of the training is.
    late = [
        SLOW_START.finding(
            "informative",
            "How long the whole training is, is not known; this comes before it in each run, and "
            f"takes {block.seconds / max(run.whole_s, 1e-9):.1f} times as long as "
            f"{whole_in_words(run)}. {_keep_it(session, block)}",
            place=block.place,
            evidence={"taken_s": block.seconds},
            part="before_training",
        )
        for block in blocks
        if block.seconds >= max(LATE.value, run.whole_s)
        and block.in_framework_s <= block.seconds / 2
    ]
    return late or [SLOW_START.finding("not-applicable", _UNKNOWN_LENGTH, part="before_training")]


def _keep_it(session: Session, block: Block) -> str:
    if block.what != READING:
        return (
            f"{block.passes} before the training: keep what is the same in every run as an array "
            '(`np.save`, then `np.load(path, mmap_mode="r")`).'
        )
    took = f"{block.seconds:.1f} s"
    roles = [loop.role for loop in session.loops if (loop.file, loop.line) == block.place]
    if roles[:1] == ["adapt"]:
        return (
            f"`adapt` takes {took}: keep what it learns from run to run (`get_vocabulary()`, or "
            "its statistics), or let it see a part of the data."
        )
    return (
        f"Reading this data set before the training takes {took}: keep what is made of it "
        "(`np.save`, or `dataset.save(path)`), or read it only once."
    )


# Between trainings and after them


def check_work_between_trainings(session: Session) -> list[Finding]:
    """Return a finding on each piece of work that takes a notable part of the run."""
    run = session.run
    assert run is not None
    blocks = blocks_of(row for row in run.parts if row.part == "between_loops")
    to_framework = ": a model is built once where its weights are set back for each training."
    found = _of_blocks(
        WORK_BETWEEN_TRAININGS, run, "between_loops", blocks, _do_it_once, to_framework
    )
    return list(found) or [WORK_BETWEEN_TRAININGS.finding("pass", part="between_loops")]


def _do_it_once(block: Block) -> str:
    whats = {READING: "reading this data set", OWN_LINE: "what these lines do"}
    what = whats.get(block.what, f"what is done {block.what}")
    return (
        "Do once, before the first training, what comes out the same for all of them: "
        f"{what} takes {block.seconds:.1f} s between them."
    )


def check_work_after_training(session: Session) -> list[Finding]:
    """Return a finding on each piece of work that takes a notable part of the run."""
    run = session.run
    assert run is not None
    if run.scope != "run":
        return [
            WORK_AFTER_TRAINING.finding("not-applicable", _UNKNOWN_LENGTH, part="after_training")
        ]
    blocks = [
        block
        for block in blocks_of(
            row for row in run.parts if row.part == "after_training" and row.line is not None
        )
        if block.seconds >= A_SECOND.value
        and 100.0 * block.seconds / max(run.whole_s, block.seconds) >= SHARE.value
    ]
    to_framework = ", which takes what it takes; only where and how often it is done can change."
    found = _of_blocks(
        WORK_AFTER_TRAINING,
        run,
        "after_training",
        blocks,
        lambda block: (
            f"{block.passes} after the training: do it in a script of its own that reads "
            "the saved model, beside the next training, or do less of it."
        ),
        to_framework,
    )
    return list(found) or [seen_or_not(WORK_AFTER_TRAINING, run, "after_training", AFTERWARDS)]


# Between epochs

_OF_KERAS = {
    "ModelCheckpoint": "`save_best_only=True` or `save_weights_only=True` saves less, and a "
    "`save_freq` of several epochs' batches saves less often",
    "BackupAndRestore": "a `save_freq` of several epochs' batches saves less often",
    "TensorBoard": "`histogram_freq=0` and `write_images=False` leave out what takes longest",
    "EarlyStopping": "`restore_best_weights=False` copies no weights",
}


def check_slow_epoch_end(session: Session) -> list[Finding]:
    """Return a finding on each callback, function or stretch of lines with a notable part."""
    run = session.run
    assert run is not None
    # At its own line a loop that evaluates lets go of its iterator, which is no end of an epoch.
    others = {
        (loop.file, loop.line)
        for loop in session.loops
        if loop.role not in ("training", "reading") and loop.kind != "keras"
    }
    ends = [row for row in run.parts if row.part == "epoch_end"]
    rows = [row for row in ends if row.line is None or (row.file, row.line) not in others]
    loops = {(loop.file, loop.line) for loop in session.loops if loop.role == "training"}
    named = [row for row in rows if row.what is not None and (row.file, row.line) not in loops]
    found = [_of_epoch_end(session, run, block) for block in blocks_of(named)]
    found = [finding for finding in found if finding.status != "pass"]
    return found or [_loop_itself(session, run, [row for row in rows if row not in named])]


def _of_epoch_end(session: Session, run: Run, block: Block) -> Finding:
    count, how = _count(run, block), _of_keras(block)
    weight = weigh_rows(run, block.rows, block.seconds)
    if weight.status == "fail" and count is not None and count < OFTEN.value:
        times = "once" if count == 1 else f"{count} times"
        sentence = f"It comes {times} in the run, so it can't be done less often."
        weight = replace(weight, status="informative", sentence=sentence)
    # The first and every fifth behind it stay; all may go of what is not done every few epochs.
    left = 1.0 / EVERY if count is None else -(-count // EVERY) / max(1, count)
    if how is not None or block.what == READING:
        left = 0.0
    saved = 1.0 if left == 1.0 else 1.0 - left
    return SLOW_EPOCH_END.finding(
        weight.status,
        weight.before(_do_it_less(block, how)),
        place=_place(session, block),
        evidence={**weight.evidence, "times": count},
        speedup_at_most=bound(1.0, saved),
        part="epoch_end",
        for_run=gain_at_most(run, block.seconds * saved),
    )


def _count(run: Run, block: Block) -> int | None:
    """Return how often it comes; None in a ledger of one epoch of an unknown number."""
    if run.scope != "run":
        return None
    epochs = round(run.epochs) if run.epochs else None
    return block.count if block.count is not None else epochs


def _place(session: Session, block: Block) -> Place:
    """Return its line; for a callback of Keras', the call that it is given to."""
    if block.hottest.line is not None:
        return block.place
    loop = next((loop for loop in session.loops if loop.id == block.hottest.loop_id), None)
    loop = loop or session.diagnosed_loop()
    return (loop.file, loop.line) if loop is not None else (None, None)


def _of_keras(block: Block) -> str | None:
    """Return what to say of a callback of Keras' own, or None."""
    if block.hottest.file is not None:
        return None
    ways = (how for name, how in _OF_KERAS.items() if block.what == callback_words(name))
    return next(ways, None)


def _do_it_less(block: Block, how: str | None) -> str:
    if block.what == READING:
        return (
            f"To read this data set takes {block.seconds:.1f} s in all: `cardinality()` counts its "
            "batches, and what else is made of it can be kept."
        )
    named = block.what.removeprefix("in ")
    takes = f"{named[:1].upper()}{named[1:]} takes {block.seconds:.1f} s in all"
    if how is not None:
        return f"{takes}: {how}."
    return (
        f"{takes}: do it every few epochs (`if (epoch + 1) % {EVERY} == 0`). Save uncompressed, "
        "only the weights, or only what is better than before; write or draw in a thread."
    )


def _loop_itself(session: Session, run: Run, rows: list[RunPart]) -> Finding:
    """Return what no callback and no line explains but the loop's own, where an epoch begins."""
    weight = weigh_rows(run, rows, sum(row.seconds for row in rows))
    if weight.status != "fail" or run.scope != "run":
        return seen_or_not(SLOW_EPOCH_END, run, "epoch_end", AN_EPOCHS_END)
    loop = session.diagnosed_loop()
    assert loop is not None
    return SLOW_EPOCH_END.finding(
        "informative",
        f"{weight.evidence['taken_percent_of_run']:.0f} % of the run lies between the epochs, in "
        "no line but the loop's own: longer ones (`repeat()` and `steps_per_epoch`) help.",
        place=(loop.file, loop.line),
        evidence=weight.evidence,
        part="epoch_end",
    )
