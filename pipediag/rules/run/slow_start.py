"""Work before the first training step that is the same in every run."""

from __future__ import annotations

from functools import partial

from pipediag.facts.limits import Threshold
from pipediag.facts.run import whole_in_words
from pipediag.rules.rule import Meta
from pipediag.rules.run.blocks import Block, blocks_of
from pipediag.rules.run.own_work import findings_of
from pipediag.rules.run.relevance import AT_MOST, THRESHOLDS
from pipediag.session.findings import Finding
from pipediag.session.ledger import OWN_LINE, READING, Run
from pipediag.session.model import Session
from pipediag.vocabulary import LoopRole

LATE = Threshold(
    "work before a training of unknown length, from which on it informs",
    5.0,
    "s, where an epoch takes less",
    "own choice: who tries something runs it again and again, and waits for this each time",
)
META = Meta(
    id="slow-start",
    name="Slow start",
    title_failed="Training starts late, after work that could be kept from run to run",
    title_passed="Training starts soon",
    looks_at="What runs before the first training step: the script's own lines, by functions, and "
    "loops that read a data set, as `adapt` does. Starting Python and importing modules is left "
    "alone; so is what a framework does for a line, as where it builds a model.",
    why="Text that is parsed, features that are computed and statistics that are adapted come out "
    "the same as long as their input is the same, and each run waits for them anew.",
    edit="Keep the result in a file: arrays as `.npy`, to be mapped with `np.load(path, "
    'mmap_mode="r")`; what a tf.data pipeline makes with `dataset.save(path)`; what `adapt` learns '
    "as the layer's vocabulary or statistics.",
    cost="A file that has to be made anew when its input or the code changes.",
    bound=AT_MOST,
    needs=("loop", "run"),
    thresholds=(*THRESHOLDS, LATE),
    severity="warn",
    effect_on_results="same results",
    untried="It comes before the training, and a trial compares steps.",
)

_FRAMEWORKS = (
    "Most of it is the framework's own work for this line. To build a model takes what it takes; "
    "what prepares data could be kept."
)


def check(session: Session) -> list[Finding]:
    """One finding for each piece of work that takes a notable part of the run."""
    run = session.run
    assert run is not None
    if run.scope != "run":
        return _beside_a_part(session, run)
    return findings_of(META, run, "before_training", partial(_advice, session), _FRAMEWORKS)


def _beside_a_part(session: Session, run: Run) -> list[Finding]:
    """By its seconds alone, where nobody knows how long all of the training is."""
    blocks = blocks_of(row for row in run.seen if row.part == "before_training")
    late = [
        block
        for block in blocks
        if block.seconds >= max(LATE.value, run.whole_s)
        and block.in_framework_s <= block.seconds / 2
    ]
    if not late:
        reason = "The ledger is of a part of the training, as nobody knows how long all of it is."
        return [META.finding("not-applicable", reason, part="before_training")]
    return [_late(session, run, block) for block in late]


def _late(session: Session, run: Run, block: Block) -> Finding:
    times = block.seconds / max(run.whole_s, 1e-9)
    return META.finding(
        "informative",
        "How long all of the training is, nobody knows; this comes before it in each run, and "
        f"takes {times:.1f} times as long as {whole_in_words(run)}. {_advice(session, block)}",
        place=(block.hottest.file, block.hottest.line),
        evidence={"taken_s": block.seconds},
        part="before_training",
    )


def _advice(session: Session, block: Block) -> str:
    took = f"{block.seconds:.1f} s"
    if block.what != READING:
        where = "at this line" if block.what == OWN_LINE else block.what
        return (
            f"{took} pass {where} before the training: keep what the training needs of it as an "
            'array (`np.save`) and map it from then on (`np.load(path, mmap_mode="r")`), if it is '
            "the same in every run."
        )
    if _role_at(session, block) == "adapt":
        return (
            f"`adapt` takes {took} over all of its data: keep what it learns from run to run (the "
            "layer's `get_vocabulary()`, or its statistics), or let it see a part of the data."
        )
    return (
        f"Reading this data set before the training takes {took}: keep what is made of it "
        "(`np.save`, or `dataset.save(path)`), or read it only once."
    )


def _role_at(session: Session, block: Block) -> LoopRole | None:
    place = (block.hottest.file, block.hottest.line)
    roles = [loop.role for loop in session.loops if (loop.file, loop.line) == place]
    return next(iter(roles), None)
