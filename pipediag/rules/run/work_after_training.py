"""Work of the script's own after its last training step."""

from __future__ import annotations

from pipediag.facts.limits import Threshold
from pipediag.rules.rule import Meta
from pipediag.rules.run.blocks import Block, blocks_of
from pipediag.rules.run.relevance import AT_MOST, SHORT, weigh
from pipediag.rules.run.unseen import seen_or_not
from pipediag.session.findings import Finding
from pipediag.session.ledger import AFTERWARDS, OWN_LINE, Run
from pipediag.session.model import Session

SHARE = Threshold(
    "what follows the training, from which on it is named",
    15.0,
    "% of the run",
    "own choice: results are exported and drawn once, so less of it is seldom worth a change",
)
A_SECOND = Threshold(
    "the same, from which on it is named",
    1.0,
    "s",
    "own choice: nobody waits for less",
)
META = Meta(
    id="work-after-training",
    name="Work after the training",
    title_failed="The run goes on for long after its training",
    title_passed="The run ends soon after its training",
    looks_at="The script's own lines behind the last training step, by functions: exports, "
    "drawings, predictions written out. The exit of Python and TensorFlow is left alone, and so is "
    "an evaluation, which `costly-evaluation` looks at. Seen where the script runs to its end.",
    why="The machine that trains, with its accelerator, waits for work that needs neither and that "
    "a next training could run beside.",
    edit="A script of its own that reads the saved model, run beside the next training or "
    "elsewhere; or less of it: one figure instead of one for each epoch, an export of the best "
    "model alone.",
    cost="Another script to call, and a saved model between the two.",
    bound=AT_MOST,
    needs=("loop", "run"),
    thresholds=(SHARE, A_SECOND, SHORT),
    severity="warn",
    effect_on_results="same results",
    untried="It comes after the training, and a trial compares steps.",
)
_FRAMEWORKS = (
    "Most of it is the framework's own work for this line, which takes what it takes; only where "
    "and how often it is done can change."
)


def check(session: Session) -> list[Finding]:
    """One finding for each piece of work that takes a notable part of the run."""
    run = session.run
    assert run is not None
    if run.scope != "run":
        reason = "The ledger is of a part of the training, as nobody knows how long all of it is."
        return [META.finding("not-applicable", reason, part="after_training")]
    rows = [row for row in run.parts if row.part == "after_training" and row.line is not None]
    found = [_finding(run, block) for block in blocks_of(rows) if _is_long(run, block)]
    return found or [seen_or_not(META, run, "after_training", AFTERWARDS)]


def _is_long(run: Run, block: Block) -> bool:
    share = 100.0 * block.seconds / max(run.whole_s, block.seconds)
    return share >= SHARE.value and block.seconds >= A_SECOND.value


def _finding(run: Run, block: Block) -> Finding:
    row, weight = block.hottest, weigh(run, block.rows, block.seconds)
    status, sentence = weight.status, weight.sentence
    if status == "fail" and block.in_framework_s > block.seconds / 2:
        status, sentence = "informative", _FRAMEWORKS
    where = "at this line" if block.what == OWN_LINE else block.what
    advice = (
        f"{block.seconds:.1f} s pass {where} after the training: do it in a script of its own that "
        "reads the saved model, beside the next training, or do less of it."
    )
    return META.finding(
        status,
        f"{sentence} {advice}".strip(),
        place=(row.file, row.line),
        evidence=weight.evidence,
        part="after_training",
        for_run=weight.for_run,
    )
