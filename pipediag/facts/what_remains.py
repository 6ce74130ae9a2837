"""What a severe verdict leads to where no change is known to help: the operation or line that the
time goes to, how much it is, the upper bound, and what to look at."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from pipediag.facts.amounts import exact_time
from pipediag.facts.bounds import bound
from pipediag.facts.ending import failed_by_itself
from pipediag.facts.pipeline import bottleneck, delay_ms, kind_name
from pipediag.facts.run import rows_to_have_back, whole_in_words
from pipediag.facts.step import GROUPS, class_ms
from pipediag.session.host import HotLine, hot_line
from pipediag.session.model import Session
from pipediag.vocabulary import Group, RunPartName

_PARTS: dict[RunPartName, tuple[str, str]] = {
    "startup": ("start-up", "`python -X importtime` lists what each import takes."),
    "before_training": (
        "what comes before the training",
        "What is made there from the same data each time can be kept in a file.",
    ),
    "compile": (
        "tracing and compiling",
        "See how often each function is traced: each new shape or Python value traces it again.",
    ),
    "epoch_start": (
        "waiting for first batches",
        "See which operation fills a buffer or opens files at the start of an epoch.",
    ),
    "evaluation": (
        "evaluation",
        "Evaluate larger batches, on fewer examples, or less often: see each place in the ledger.",
    ),
    "epoch_end": (
        "what comes between the epochs",
        "See its places in the ledger: what is done there can be done less often.",
    ),
    "between_loops": (
        "what comes between the trainings",
        "See its places in the ledger: what is made anew for each training can be kept.",
    ),
    "after_training": (
        "what comes after the training",
        "See its places in the ledger: what reads a saved model can run beside the next training.",
    ),
}
_GROUPS: dict[Group, str] = {
    "compute": "computing on the device",
    "transfer": "copies",
    "overhead": "starting operations and Python",
}


def what_remains(session: Session) -> list[str]:
    """Sentences for a verdict of high or moderate severity, the most useful first."""
    verdict = session.verdict
    if verdict.severity not in ("high", "moderate"):
        return []
    failure = failed_by_itself(session)
    if failure is not None:
        return [f"{failure} Make it run first, then measure it again."]
    found = [*_in_the_run(session), *_in_the_step(session)]
    return found or ["Measure longer, with `--steps`: where the time goes is not known well."]


def _in_the_run(session: Session) -> Iterator[str]:
    verdict, run = session.verdict, session.run
    if run is None or verdict.where is None or verdict.where not in _PARTS:
        return
    name, look = _PARTS[verdict.where]
    taken_s = sum(row.seconds for row in rows_to_have_back(run, verdict.where))
    place = _at(verdict.where_file, verdict.where_line)
    yield (
        f"What remains is {name}: {exact_time(taken_s * 1e3)} of {whole_in_words(run)} "
        f"({exact_time(run.whole_s * 1e3)}){f', most of it{place}' if place else ''}"
        f"{_at_most(bound(run.whole_s, taken_s))}. {look}"
    )


def _in_the_step(session: Session) -> Iterator[str]:
    if session.steps is None or session.breakdown is None:
        return
    match session.verdict.bottleneck:
        case "input":
            yield from _input(session)
        case "compute":
            yield _of_group(session, "compute", _of_compute(session))
        case "transfer":
            yield _of_group(
                session, "transfer", "What is copied every step and does not change can stay there."
            )
        case "overhead" | "balanced":
            yield _of_group(session, "overhead", _of_overhead(session))


def _input(session: Session) -> Iterator[str]:
    assert session.steps is not None
    wait_ms, step_ms = class_ms(session, ["input_wait"]), session.steps.mean_ms
    op = bottleneck(session.pipeline)
    if op is None:
        yield (
            f"What remains is waiting for input: {_of_step(session, wait_ms)}. Take batches "
            "without training, `for batch in dataset`, and time that: what it takes alone is what "
            "to shorten."
        )
        return
    delay = delay_ms(session, op)
    own_ms = wait_ms if delay is None else min(delay, wait_ms)
    yield (
        f"What remains is {kind_name(op)}{_at(op.file, op.line)}, which sets the pace of the "
        f"input: {exact_time(own_ms)} of waiting in a step of {exact_time(step_ms)}"
        f"{_at_most(bound(step_ms, own_ms))}. Shorten what it does for each element, or do that "
        "once, before training, and read the results."
    )
    hot = hot_line(session.host, "source")
    if hot is not None:
        yield (f"Begin {_place(hot)}, where its Python was in {hot.percent:.0f} % of the samples.")


def _of_group(session: Session, group: Group, look: str) -> str:
    said = _of_step(session, class_ms(session, GROUPS[group]))
    return f"What remains is {_GROUPS[group]}: {said}. {look}"


def _of_step(session: Session, part_ms: float) -> str:
    assert session.steps is not None
    step_ms = session.steps.mean_ms
    at_most = _at_most(bound(step_ms, part_ms))
    return f"{exact_time(part_ms)} of a step of {exact_time(step_ms)}{at_most}"


def _of_compute(session: Session) -> str:
    """Where to look for it: kernels are a GPU's, and named there alone."""
    if any(device.kind.upper() == "GPU" for device in session.environment.devices):
        return "Device idle time names the kernels that take most of it."
    return "It is the model itself: make it smaller, or give it a faster processor."


def _of_overhead(session: Session) -> str:
    hot = hot_line(session.host, "main")
    if hot is None:
        return "A longer profile, `--profile-steps 50`, says more of what each call does."
    return (
        f"Begin {_place(hot)}, where the training loop's Python was in "
        f"{hot.percent:.0f} % of the samples."
    )


def _place(line: HotLine) -> str:
    return _at(line.file, line.line).strip()


def _at(file: str | None, line: int | None) -> str:
    if file is None:
        return ""
    return f" at {PurePath(file).name}:{line}" if line else f" in {PurePath(file).name}"


def _at_most(factor: float | None) -> str:
    return "" if factor is None else f", so at most {factor:.3g}x if it cost nothing"
