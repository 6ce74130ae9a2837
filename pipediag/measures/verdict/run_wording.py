"""The sentence on the part of the run that costs most, where that is not the steps."""

from __future__ import annotations

from pipediag.facts.run import Where, rows_to_have_back, whole_in_words
from pipediag.measures.verdict.culprits import Culprit, ShuffleFill
from pipediag.measures.verdict.loop_wording import behind_in_words, length
from pipediag.measures.verdict.wording import place
from pipediag.session.ledger import Run, RunPart
from pipediag.vocabulary import Bottleneck, RunPartName

_SPENT: dict[RunPartName, str] = {
    "startup": "passes while Python and its modules start",
    "before_training": "passes before the first training step",
    "compile": "goes to tracing and compiling functions",
    "epoch_start": "is spent waiting for the first batch of each epoch",
    "steps": "is spent in steps",
    "evaluation": "is evaluation",
    "epoch_end": "lies between the epochs, in callbacks and other code",
    "between_loops": "lies between the trainings",
    "after_training": "comes after the training",
}


_STEPS: dict[Bottleneck, str] = {
    "input": "Its steps are input-bound.",
    "compute": "Its steps are compute-bound.",
    "transfer": "Its steps are transfer-bound.",
    "overhead": "Its steps are overhead-bound.",
    "balanced": "Nothing by itself limits its steps.",
    "inconclusive": "What limits its steps is not settled.",
}


def run_sentence(run: Run, where: Where, bottleneck: Bottleneck) -> str:
    """How much of the run it is, in what, and at which line; what limits the steps."""
    seconds = sum(row.seconds for row in rows_to_have_back(run, where.part))
    text = (
        f"{where.percent:.0f} % of {whole_in_words(run)} ({length(seconds)} of "
        f"{length(run.whole_s)}) {_SPENT[where.part]}"
    )
    text += _most_of_it(where.row, seconds) + _meanwhile(where.row)
    return f"{text}. {_STEPS[bottleneck]}"


def first_batches_of_run_sentence(
    run: Run, later_s: float | None, behind: ShuffleFill | Culprit | None
) -> str:
    """Input-bound between the epochs, by the ledger's own seconds.

    `later_s`: of these, all but the first epoch's, in which the pipeline has to start.
    """
    seconds, whole = run.seconds_of("epoch_start"), whole_in_words(run)
    text = (
        f"Highly input-bound: {run.percent_of('epoch_start'):.0f} % of {whole} ({length(seconds)} "
        f"of {length(run.whole_s)}) {_SPENT['epoch_start']}{behind_in_words(behind)}"
    )
    left_s = run.whole_s - (later_s or 0.0)
    if 0.0 < left_s < 0.999 * run.whole_s:
        which = "Without all but the first" if run.scope == "run" else "Without any"
        text += f". {which} of these waits it would be {run.whole_s / left_s:.3g}x as fast"
    return f"{text}."


def _meanwhile(row: RunPart | None) -> str:
    if row is None or row.waits_for is None:
        return ""
    at = place(row.waits_for_file, row.waits_for_line).strip().removeprefix("at ")
    return f", while {row.waits_for}{f' ({at})' if at else ''}"


def _most_of_it(row: RunPart | None, seconds: float) -> str:
    if row is None or row.line is None or seconds <= 0:
        return ""
    what = row.what or ("a loop" if row.loop_id else "code")
    often = f", {row.count:,} times" if row.count is not None and row.count > 1 else ""
    share = 100.0 * row.seconds / seconds
    most = "" if share > 99 else f"{share:.0f} % of it "
    return f": {most}{what}{place(row.file, row.line)}{often}"
