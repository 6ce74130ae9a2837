"""Work of the script's own that comes again between one training and the next."""

from __future__ import annotations

from pipediag.rules.rule import Meta
from pipediag.rules.run.blocks import Block, blocks_of
from pipediag.rules.run.relevance import AT_MOST, NOT_PREDICTED, THRESHOLDS, weigh
from pipediag.session.findings import Finding
from pipediag.session.ledger import OWN_LINE, READING, Run
from pipediag.session.model import Session

META = Meta(
    id="work-between-trainings",
    name="Work between trainings",
    title_failed="Each training waits for work that is done anew before it",
    title_passed="Trainings follow each other without a long pause",
    looks_at="What runs between two trainings of one script, as between folds, configurations or "
    "rounds: the script's own lines, by functions, and loops that read a data set. What a "
    "framework does for a line, as where it builds a model, is told and not advised on.",
    why="What is read, parsed or computed from the same data comes out the same for each training, "
    "and all but the first wait for it anew.",
    edit="Make it once, before the first training, and let each take its part of it (indices of a "
    "fold into one array); keep what takes long in a file.",
    cost="What is kept for all trainings stays in memory.",
    prediction=AT_MOST,
    needs=("loop", "run"),
    thresholds=THRESHOLDS,
    severity="warn",
    effect_on_results="same results",
    untried="It lies between the trainings, and a trial compares steps.",
)


def check(session: Session) -> list[Finding]:
    """One finding for each piece of work that takes a notable part of the run."""
    run = session.run
    assert run is not None
    rows = [row for row in run.parts if row.part == "between_loops"]
    found = [_finding(run, block) for block in blocks_of(rows)]
    return [one for one in found if one.status != "pass"] or [
        META.finding("pass", "", part="between_loops")
    ]


def _finding(run: Run, block: Block) -> Finding:
    row = block.hottest
    weight = weigh(run, block.rows, block.seconds)
    status, sentence = weight.status, weight.sentence
    if status == "fail" and block.in_framework_s > block.seconds / 2:
        status = "informative"
        sentence = (
            "Most of it is the framework's own work for this line: a model is built once where "
            "its weights are set back for each training."
        )
    advice = "" if status == "pass" else f"{sentence} {_advice(block)}".strip()
    return META.finding(
        status,
        advice,
        place=(row.file, row.line),
        evidence={**weight.evidence, "times": block.count},
        own_prediction=NOT_PREDICTED,
        part="between_loops",
        saved_s=weight.saved_s,
    )


def _advice(block: Block) -> str:
    if block.what == READING:
        what = "reading this data set"
    elif block.what == OWN_LINE:
        what = "what these lines do"
    else:
        what = f"what is done {block.what}"
    return (
        "Do once, before the first training, what comes out the same for all of them: "
        f"{what} takes {block.seconds:.1f} s between them. What hangs on the training before it "
        "has to stay."
    )
