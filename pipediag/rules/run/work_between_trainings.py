"""Work of the script's own that comes again between one training and the next."""

from __future__ import annotations

from pipediag.rules.rule import Meta
from pipediag.rules.run.blocks import Block
from pipediag.rules.run.own_work import findings_of
from pipediag.rules.run.relevance import AT_MOST, THRESHOLDS
from pipediag.session.findings import Finding
from pipediag.session.ledger import OWN_LINE, READING
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
    bound=AT_MOST,
    needs=("loop", "run"),
    thresholds=THRESHOLDS,
    severity="warn",
    effect_on_results="same results",
    untried="It lies between the trainings, and a trial compares steps.",
)

_FRAMEWORKS = (
    "Most of it is the framework's own work for this line: a model is built once where its weights "
    "are set back for each training."
)


def check(session: Session) -> list[Finding]:
    """One finding for each piece of work that takes a notable part of the run."""
    assert session.run is not None
    return findings_of(META, session.run, "between_loops", _advice, _FRAMEWORKS)


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
