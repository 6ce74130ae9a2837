"""Callbacks and other code that training waits for at the end of each epoch."""

from __future__ import annotations

from pipediag.facts.bounds import bound
from pipediag.facts.limits import Threshold
from pipediag.facts.run import whole_in_words
from pipediag.facts.run_gain import gain_at_most, gain_without
from pipediag.rules.rule import Meta, Place
from pipediag.rules.run.blocks import Block, blocks_of
from pipediag.rules.run.relevance import THRESHOLDS, weigh
from pipediag.rules.run.unseen import seen_or_not
from pipediag.session.findings import Finding
from pipediag.session.ledger import AN_EPOCHS_END, READING, Run, RunPart, callback_words
from pipediag.session.model import Session

OFTEN = Threshold(
    "how often it comes",
    3.0,
    "times",
    "own choice: what comes once or twice can't be done every few epochs",
)
EVERY = 5
"""Epochs of which one is kept, in what is said of fewer. Own choice."""
META = Meta(
    id="slow-epoch-end",
    name="Slow end of the epoch",
    title_failed="Training waits at the end of each epoch for what could be done less often",
    title_passed="Epochs follow each other without a long pause",
    looks_at="What runs between the last step of an epoch and the next epoch: each callback, by "
    "its "
    "name and line, and the script's own lines. Validation and the wait for the first batch are "
    "told by themselves.",
    why="Nothing is trained meanwhile. Compressing a checkpoint takes many times as long as "
    "writing "
    "it, and plots and full logs of every epoch are seldom looked at.",
    edit="Do it every few epochs; save uncompressed (`np.savez`), only the weights, or only what "
    "is "
    "better than before; write in a thread, on a copy of the weights.",
    cost="After a crash, more epochs are lost. Uncompressed files are larger.",
    bound="By the ledger: what is left where every fifth of those times remains; and what "
    "the run would be without any. For what Keras' own callbacks leave out, and for what is read, "
    "none.",
    needs=("loop", "run"),
    thresholds=(OFTEN, *THRESHOLDS),
    severity="warn",
    effect_on_results="same results",
    untried="It needs your code changed, and only you know what may be left out; a trial compares "
    "steps.",
)

_OF_KERAS = {
    "ModelCheckpoint": "`save_best_only=True` or `save_weights_only=True` saves less, and a "
    "`save_freq` of several epochs' batches saves less often",
    "BackupAndRestore": "a `save_freq` of several epochs' batches saves less often",
    "TensorBoard": "`histogram_freq=0` and `write_images=False` leave out what takes longest",
    "EarlyStopping": "`restore_best_weights=False` copies no weights",
}


def check(session: Session) -> list[Finding]:
    """One finding for each callback, function or stretch of lines that takes a notable part."""
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
    found = [_finding(session, run, block) for block in blocks_of(named)]
    found = [finding for finding in found if finding.status != "pass"]
    return found or [_loop_itself(session, run, [row for row in rows if row not in named])]


def _finding(session: Session, run: Run, block: Block) -> Finding:
    weight = weigh(run, block.rows, block.seconds)
    count = _count(run, block)
    status, sentence = weight.status, weight.sentence
    if status == "fail" and count is not None and count < OFTEN.value:
        status = "informative"
        times = "once" if count == 1 else f"{count} times"
        sentence = f"It comes {times} in the run, so it can't be done less often."
    advice = f"{sentence} {_advice(block)}{_without(run, block)}".strip()
    left = 0.0 if _has_a_way_of_its_own(block) else _left(count)
    saved = 1.0 if left == 1.0 else 1.0 - left
    return META.finding(
        status,
        "" if status == "pass" else advice,
        place=_place(session, block),
        evidence={**weight.evidence, "times": count},
        speedup_at_most=bound(1.0, saved),
        part="epoch_end",
        for_run=gain_at_most(run, block.seconds * saved),
    )


def _left(count: int | None) -> float:
    """The part of the times that remains where the first and every fifth behind it do."""
    return 1.0 / EVERY if count is None else -(-count // EVERY) / max(1, count)


def _without(run: Run, block: Block) -> str:
    """What the ledger says of the run without it, as a sentence; nothing where nothing else is."""
    gain = gain_without(run, block.rows)
    if gain is None or gain.ci95 is None:
        return ""
    low, high = gain.ci95
    return (
        f" Without it {whole_in_words(run)} would be {gain.speedup:.2f}x as fast, by the ledger "
        f"({low:.2f} to {high:.2f}x)."
    )


def _count(run: Run, block: Block) -> int | None:
    """How often it comes; None in a ledger that is of one epoch of nobody knows how many."""
    if run.scope != "run":
        return None
    epochs = round(run.epochs) if run.epochs else None
    return block.count if block.count is not None else epochs


def _place(session: Session, block: Block) -> Place:
    """Its line; of a callback of Keras's, the call that it is given to."""
    row = block.hottest
    if row.line is not None:
        return row.file, row.line
    loop = next((loop for loop in session.loops if loop.id == row.loop_id), None)
    loop = loop or session.diagnosed_loop()
    return (loop.file, loop.line) if loop is not None else (None, None)


def _has_a_way_of_its_own(block: Block) -> bool:
    """Whether the advice is another one than to do it every few epochs."""
    return block.what == READING or _of_keras(block) is not None


def _of_keras(block: Block) -> str | None:
    """What to say of a callback of Keras' own."""
    if block.hottest.file is not None:
        return None
    ways = (how for name, how in _OF_KERAS.items() if block.what == callback_words(name))
    return next(ways, None)


def _advice(block: Block) -> str:
    what = block.what
    if what == READING:
        return (
            f"To read this data set takes {block.seconds:.1f} s in all: `cardinality()` tells how "
            "many batches it has, and what else is made of it can be kept from the first time."
        )
    how = _of_keras(block)
    if how is not None:
        return f"{_doer(what)} takes {block.seconds:.1f} s in all: {how}."
    return (
        f"{_doer(what)} takes {block.seconds:.1f} s in all: do it every few epochs "
        f"(`if (epoch + 1) % {EVERY} == 0`). If it saves, save uncompressed and only the weights, "
        "or only what is better than before; if it only writes or draws, a thread can do it beside "
        "the training."
    )


def _doer(what: str) -> str:
    """A function's row says where its lines are, and the sentence who takes the time."""
    named = what.removeprefix("in ")
    return f"{named[:1].upper()}{named[1:]}"


def _loop_itself(session: Session, run: Run, rows: list[RunPart]) -> Finding:
    """What no callback and no line explains but the loop's own, where the next epoch is begun."""
    weight = weigh(run, rows, sum(row.seconds for row in rows))
    if weight.status != "fail" or run.scope != "run":
        return seen_or_not(META, run, "epoch_end", AN_EPOCHS_END)
    loop = session.diagnosed_loop()
    assert loop is not None
    return META.finding(
        "informative",
        f"{weight.evidence['taken_percent_of_run']:.0f} % of the run lies between the epochs, in "
        "no line but the loop's own. What comes with each epoch is less with fewer and longer "
        "ones (`repeat()` and `steps_per_epoch`).",
        place=(loop.file, loop.line),
        evidence=weight.evidence,
        part="epoch_end",
    )
