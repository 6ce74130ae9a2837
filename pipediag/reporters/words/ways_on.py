"""Where no rule has a change to advise: what to try or to measure next.

None of it is a recommendation of a change: these are places to look at, and longer measurements.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from pipediag.facts.ending import failed_by_itself
from pipediag.facts.order import worth_doing
from pipediag.facts.python_work import hot_line
from pipediag.facts.run import rows_to_have_back
from pipediag.facts.undivided import only_input_is_told
from pipediag.reporters.words import labels, run_parts, step_parts
from pipediag.reporters.words.pipeline_rows import operation_title
from pipediag.reporters.words.quantities import counted, percent, seconds
from pipediag.reporters.words.source_names import SourceNames
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import NO_BUDGET
from pipediag.vocabulary import RunPartName

LONGER_RUN_STEPS = 200
"""Enough for a 95 % interval of a few percent at the spread that short steps usually have."""
_MORE_TIME = 3.0
"""Times the budget that trials had: an interval gets narrower by the root of that."""

_BY_TORCH = (
    "PyTorch's own profiler divides the rest of the step: put `with torch.profiler.profile() as "
    "profile:` around a `fit` of a few steps, and "
    '`print(profile.key_averages().table(sort_by="self_cpu_time_total"))` behind it.'
)
_NONE = "No rule has a change worth making"

_OF_A_PART: dict[RunPartName, str] = {
    "startup": "`python -X importtime` lists what each import takes.",
    "before_training": "What is made there from the same data each time can be kept in a file.",
    "compile": "See how often each function is traced, under The steps; each new shape or Python "
    "value traces it again.",
    "epoch_start": "See which operation fills a buffer or opens files then, under The input "
    "pipeline.",
    "evaluation": "See its places in the ledger; how often it is made is an argument of the call.",
    "epoch_end": "See its places in the ledger: what is done there can be done less often.",
    "between_loops": "See its places in the ledger: what is made anew for each training can be "
    "kept.",
    "after_training": "See its places in the ledger: what reads a saved model can be done beside "
    "the next training.",
}


def ways_on(session: Session) -> list[str]:
    """Sentences, the most useful first; none where something is worth doing, nothing is left, or
    the script failed, which comes before all speed."""
    failed = failed_by_itself(session) is not None
    if session.steps is None or failed or any(worth_doing(finding) for finding in session.findings):
        return []
    return list(_ways(session))


def _ways(session: Session) -> Iterator[str]:
    verdict = session.verdict
    budget = longer_budget(session)
    if budget is not None:
        yield (
            f"{counted(len(_left_open(session)), 'change')} could not be decided in the time for "
            f"trials: `--budget {budget}` gives them more."
        )
    if verdict.bottleneck == "inconclusive":
        told = only_input_is_told(session)
        yield _BY_TORCH if told else f"Measure longer: `--steps {longer_run(session)}`."
    if verdict.severity not in ("high", "moderate"):
        return
    yield from _in_the_run(session)
    yield from _in_the_step(session)
    if session.trials_missing == NO_BUDGET:
        yield "Leave out `--budget 0`: trials may show what no rule can predict."


def longer_budget(session: Session) -> int | None:
    """Seconds to give trials that left a change open; None where they left none."""
    if session.trials is None or not _left_open(session):
        return None
    inconclusive = any(finding.trial.state == "inconclusive" for finding in session.findings)
    more_s = _MORE_TIME * session.trials.budget_s if inconclusive else 0.0
    return math.ceil(max(more_s, session.trials.epochs_need_s or 0.0))


def _left_open(session: Session) -> list[Finding]:
    epochs = too_long_to_try(session)
    return [
        finding
        for finding in session.findings
        if finding.trial.state == "inconclusive" or finding in epochs
    ]


def too_long_to_try(session: Session) -> list[Finding]:
    """Findings whose edits change whole epochs, of which the time for trials held too few."""
    if session.trials is None or session.trials.epochs_need_s is None:
        return []
    return [
        finding
        for finding in session.findings
        if finding.edit is not None
        and finding.edit.whole_epoch
        and finding.trial.state == "not_tried"
        and finding.effect_on_results != "not safe here"
    ]


def longer_run(session: Session) -> int:
    """Steps to ask for where those that were seen decide nothing."""
    seen = session.steps.count if session.steps is not None else 0
    return max(LONGER_RUN_STEPS, 4 * seen)


def _in_the_run(session: Session) -> Iterator[str]:
    verdict, run = session.verdict, session.run
    if run is None or verdict.where is None or verdict.where not in _OF_A_PART:
        return
    place = SourceNames(session).at(verdict.where_file, verdict.where_line)
    at = f", most of it at {place}" if place else ""
    part = labels.in_sentence(run_parts.RUN_PART[verdict.where])
    taken = seconds(sum(row.seconds for row in rows_to_have_back(run, verdict.where)))
    yield f"{_NONE} for {part} ({taken}{at}). {_OF_A_PART[verdict.where]}"


def _in_the_step(session: Session) -> Iterator[str]:
    match session.verdict.bottleneck:
        case "input":
            yield from _input(session)
        case "overhead" | "balanced":
            yield from _overhead(session)
        case "transfer":
            yield (
                f"{_NONE} for these copies. Device idle time names each direction: "
                "what is copied every step and does not change can stay on the device."
            )
        case "compute":
            yield f"{_NONE} for this compute. {_of_compute(session)}"


def _of_compute(session: Session) -> str:
    """Where to look for it: kernels are a GPU's, and named there alone."""
    if any(device.kind.upper() == "GPU" for device in session.environment.devices):
        return "Device idle time names the kernels that take most of it."
    cost = session.embedding_cost
    part = max(cost.parts, key=lambda one: one.ms, default=None) if cost is not None else None
    if part is None:
        return "What is left is the model itself, or a faster processor for it."
    of_table = f" of `{part.layer}`" if part.layer else ""
    return (
        f"Most of it, {percent(part.percent)}, is the {step_parts.name(part)}{of_table}: what is "
        "left is to make that smaller, or a faster processor for it."
    )


def _input(session: Session) -> Iterator[str]:
    pipeline = session.pipeline
    op = session.operation(pipeline.bottleneck_op_id) if pipeline is not None else None
    if op is None:
        yield (
            f"{_NONE} for this input. Take batches without training, "
            "`for batch in dataset`, and time that: what it takes alone is what to shorten."
        )
        return
    names = SourceNames(session)
    place = names.at(op.file, op.line)
    at = f" at {place}" if place else ""
    yield (
        f"{_NONE} for `{operation_title(op)}`{at}, which sets the pace. Shorten what "
        "it does for each element, or do that once, before training, and read the results."
    )
    hot = hot_line(session.host, "source")
    if hot is not None:
        yield (
            f"Of its Python, {names.at(hot.file, hot.line)} runs in {percent(hot.percent)} of the "
            "looks at it: begin there."
        )


def _overhead(session: Session) -> Iterator[str]:
    hot = hot_line(session.host, "main")
    if hot is not None:
        place = SourceNames(session).at(hot.file, hot.line)
        yield (
            f"{_NONE} for this overhead. Of the training loop's Python, {place} runs "
            f"in {percent(hot.percent)} of the looks at it: begin there."
        )
        return
    yield (
        f"{_NONE} for this overhead. A longer profile, `--profile-steps 50`, says more "
        "of what each call of the step does."
    )
