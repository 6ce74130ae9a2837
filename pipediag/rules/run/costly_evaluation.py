"""Evaluation that takes a relevant part of the run, and is done more often than it need be."""

from __future__ import annotations

from collections.abc import Sequence

from pipediag.facts.evaluations import loop_at
from pipediag.facts.limits import INPUT_WAIT, Threshold
from pipediag.rules.rule import Meta
from pipediag.rules.run.evaluated_data import cures_of, what_its_data_lacks
from pipediag.rules.run.evaluation_cure import Cure
from pipediag.rules.run.relevance import AT_MOST, THRESHOLDS, weigh
from pipediag.rules.run.unseen import seen_or_not
from pipediag.session.findings import Finding
from pipediag.session.ledger import AN_EPOCHS_END, Run, RunPart
from pipediag.session.loops import Loop
from pipediag.session.model import Session

OFTEN = Threshold(
    "how often one place evaluates",
    3.0,
    "times",
    "own choice: once before and once after a training is what it takes to compare",
)
EVERY = 5
"""Evaluations of which one is kept, in what is said of fewer. Own choice."""
META = Meta(
    id="costly-evaluation",
    name="Costly evaluation",
    title_failed="Evaluation takes a relevant part of the run, and comes with every epoch",
    title_passed="Evaluation takes little of the run, or comes seldom",
    looks_at="Validation in `fit`, calls of `evaluate` and `predict`, and loops that evaluate: how "
    "long each place takes of the run, how often it comes, and the size of its batches; what its "
    "steps wait for input by tf.data's own clock, and what its pipeline makes anew each time. The "
    "test after a training is left alone.",
    why="Nothing is trained while a model is evaluated. Few decisions need it after every epoch, "
    "or "
    "on all of the data.",
    edit="Evaluate every few epochs (`validation_freq`) or on a part (`validation_steps`), in "
    "larger batches (`validation_batch_size`, where `fit` is given arrays). Where its steps wait "
    "for data: end its pipeline with `.cache()` if it is made anew each time, give parallel calls "
    "to a map that TensorFlow keeps serial, and a `prefetch` where TensorFlow is kept from "
    "appending one.",
    cost="Callbacks that watch a validation metric see it less often; where one of them decides "
    "over the training (EarlyStopping, ReduceLROnPlateau), that changes a hyper-parameter, its "
    "patience. A part of the data tells less exactly. A cache takes memory for every element.",
    bound=f"{AT_MOST} What every fifth evaluation would save follows from the ledger. A "
    "prefetch leaves the longer of the wait and the rest of a step.",
    needs=("loop", "run"),
    thresholds=(OFTEN, INPUT_WAIT, *THRESHOLDS),
    severity="warn",
    effect_on_results="same results",
    untried="Only you know how often you need to know: to evaluate less changes what you and your "
    "callbacks see, so that is not tried.",
    tried_when_informing=True,
    tried_where="A cache and parallel calls are applied to the evaluation's own pipeline, and "
    "measured on that alone.",
)


def check(session: Session) -> list[Finding]:
    """For each place that evaluates for a notable part of the run a finding on how often that is,
    and one on its data where that is made anew each time and waited for."""
    run = session.run
    assert run is not None
    rows = [row for row in run.parts if row.part == "evaluation" and row.what is not None]
    rows.sort(key=lambda row: -row.seconds)
    found: list[Finding] = []
    for row in rows:
        count = _count(row, loop_at(session, row)) if run.scope == "run" else None
        found.append(_finding(session, run, row, count))
        cures = cures_of(session, row)
        found += [_of_its_data(run, row, cure, count) for cure in cures if _comes(cure, count)]
    return [one for one in found if one.status != "pass"] or [
        seen_or_not(META, run, "evaluation", AN_EPOCHS_END)
    ]


def _comes(cure: Cure, count: int | None) -> bool:
    """Whether any evaluation would gain; one that is the only one fills a cache for none."""
    return count != 1 or not cure.fills_first


def _of_its_data(run: Run, row: RunPart, cure: Cure, count: int | None) -> Finding:
    """At the line of what is waited for; the first evaluation fills a cache."""
    gaining = 1.0 if count is None or not cure.fills_first else 1.0 - 1.0 / count
    saved_s = row.seconds * cure.saved_percent / 100.0 * gaining
    weight = weigh(run, [row], saved_s)
    advice = cure.advice if weight.status == "fail" else f"{weight.sentence} {cure.advice}"
    return META.finding(
        weight.status,
        "" if weight.status == "pass" else advice,
        op_id=cure.work.id,
        place=(cure.work.file, cure.work.line),
        title=cure.title,
        evidence={
            **weight.evidence,
            "times": count,
            "evaluation_wait_percent": cure.wait_percent,
            "cache_bytes": cure.bytes,
        },
        effect=cure.effect,
        condition=cure.condition,
        edit=cure.edit,
        untried=cure.untried,
        part="evaluation",
        for_run=weight.for_run,
        speedup_at_most=weight.speedup_at_most,
    )


def _finding(session: Session, run: Run, row: RunPart, count: int | None) -> Finding:
    loop = loop_at(session, row)
    every_fifth = _every_fifth(run, row, count)
    seldom = count is not None and count < OFTEN.value
    # Of what comes often, every fifth has to remain, or one.
    saved_s = row.seconds if seldom or count is None else row.seconds * (1.0 - _left(count))
    weight = weigh(run, [row], saved_s)
    watching = _watching(session, row)
    status, advice = weight.status, _advice(session, row, loop, every_fifth, watching)
    if status == "fail" and seldom:
        status = "informative"
        times = "once" if count == 1 else f"{count} times"
        advice = f"{_named(row)} comes {times}, which a run may well need.{_batches(session, row)}"
    elif status != "fail":
        advice = weight.sentence and f"{weight.sentence} {advice}"
    return META.finding(
        status,
        advice,
        place=(row.file, row.line),
        evidence={
            **weight.evidence,
            "times": count,
            "batch_size": loop.batch_size if loop is not None else None,
        },
        effect="changes a hyper-parameter" if watching else None,
        condition="if every fifth evaluation tells you enough",
        part="evaluation",
        for_run=weight.for_run,
        speedup_at_most=weight.speedup_at_most,
    )


def _watching(session: Session, row: RunPart) -> list[str]:
    """Callbacks that decide over the training by what its validation says."""
    diagnosed = session.diagnosed_loop()
    if diagnosed is None or diagnosed.keras is None or not _validates(session, row):
        return []
    return diagnosed.keras.deciding_callbacks


def _validates(session: Session, row: RunPart) -> bool:
    """Whether it is the validation within the `fit` that was diagnosed."""
    diagnosed = session.diagnosed_loop()
    assert diagnosed is not None
    return diagnosed.kind == "keras" and (row.file, row.line) == (diagnosed.file, diagnosed.line)


def _count(row: RunPart, loop: Loop | None) -> int | None:
    """How often it came; of a loop's, by its iterators, as its wait is a stretch of its own."""
    if loop is not None and loop.kind != "keras" and row.basis == "measured":
        return loop.iterators
    return row.count


def _every_fifth(run: Run, row: RunPart, count: int | None) -> str:
    """What the run would be with a fifth of the evaluations, by Amdahl's law."""
    if count is None or count < EVERY:
        return ""
    saved_s = row.seconds * (1.0 - _left(count))
    after_s = run.whole_s - saved_s
    return (
        f" Every fifth alone takes {saved_s:.1f} s off the run, which is then "
        f"{run.whole_s / after_s:.2f}x as fast."
    )


def _left(count: int) -> float:
    """The part of the evaluations that remains."""
    return max(1, count // EVERY) / count


def _advice(
    session: Session, row: RunPart, loop: Loop | None, every_fifth: str, watching: Sequence[str]
) -> str:
    if _validates(session, row):
        less = (
            f"Validate every few epochs (`validation_freq={EVERY}`), or on a part of the data "
            "(`validation_steps`)"
        )
    else:
        less = f"{_named(row)}: do it every few epochs, or on a part of the data"
    if watching:
        names = " and ".join(f"`{name}`" for name in watching)
        less += f"; {names} then counts fewer values, so give it a smaller `patience`"
    return f"{less}.{every_fifth}{_batches(session, row)}{what_its_data_lacks(session, loop)}"


def _named(row: RunPart) -> str:
    what = row.what or "evaluation"
    return what[:1].upper() + what[1:]


def _batches(session: Session, row: RunPart) -> str:
    loop, by = loop_at(session, row), _by(session, row)
    if loop is None or loop.batch_size is None:
        return f" Larger batches{by} take less time, as no gradients are kept."
    return (
        f" Its batches of {loop.batch_size} can be larger{by}, as no gradients are kept: that "
        "takes less time as long as they are small."
    )


def _by(session: Session, row: RunPart) -> str:
    """Keras' own argument, where its validation makes batches of the arrays that it was given."""
    loop = loop_at(session, row)
    of_arrays = (
        _validates(session, row)
        and loop is not None
        and loop.pipeline is not None
        and bool(loop.pipeline.ops)
        and all(op.made_by_framework for op in loop.pipeline.ops)
        and not any(op.kind == "from_generator" for op in loop.pipeline.ops)
    )
    return " (`validation_batch_size` in `fit`)" if of_arrays else ""
