"""Work on all rows of an embedding table, or on all classes of a vocabulary, for a few of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from pipediag.facts.embeddings import (
    LARGE,
    WITHIN,
    large,
    masks_a_token,
    within_percent,
)
from pipediag.facts.limits import INPUT_BOUND, OPERATION_SHARE, Threshold
from pipediag.facts.step import class_ms, class_percent, percent_of_step
from pipediag.rules.model_edits import (
    NO_MODEL_EDIT,
    PLAIN_SGD,
    compiled_by_xla,
    fused_update,
    no_row_wise,
    row_wise_advice,
    row_wise_update,
)
from pipediag.rules.relevance import at_most_without, input_first
from pipediag.rules.rule import Place, Rule, known
from pipediag.session.findings import Finding
from pipediag.session.loops import Embedding
from pipediag.session.model import Session
from pipediag.session.recorded_loops import EmbeddingIds, Softmax
from pipediag.vocabulary import FUSED, Scalar

_tables_rule = partial(
    Rule, id="embedding-update", needs=("loop", "steps", "breakdown"), frees=("device_compute",)
)


def _judged(
    rule: Rule,
    session: Session,
    advice: str,
    evidence: Mapping[str, Scalar],
    *,
    took_ms: float | None,
    gone_ms: float | None = None,
    place: Place | None = None,
    **given: Any,
) -> Finding:
    """Return a finding that informs where the passes take little, or input comes first.

    Args:
        took_ms: time of a step in what the advice takes away; None where the profile has none.
        gone_ms: time of a step that may go with it, where that is more.
        place: what to change; the loop, where that is not known.
    """
    took, compute = percent_of_step(session, took_ms), class_percent(session, ["device_compute"])
    little = compute < UPDATE_COMPUTE.value
    if took is not None:
        evidence = {**evidence, "took_ms_per_step": took_ms, "took_percent_of_step": took}
        little = took < OPERATION_SHARE.value
    loop = known(session.diagnosed_loop())
    gone = took if gone_ms is None else percent_of_step(session, gone_ms)
    return rule.finding(
        "informative" if little else "fail",
        advice,
        unless=input_first(session),
        evidence=evidence,
        place=place or (loop.file, loop.line),
        speedup_at_most=None if gone is None else at_most_without(session, gone),
        **given,
    )


def _added(times_ms: Iterable[float | None]) -> float | None:
    """Return the sum; None if one of the times is not known."""
    found = list(times_ms)
    return None if None in found else sum(filter(None, found))


def _names_of(tables: Sequence[Embedding]) -> str:
    names = ", ".join(f"`{table.layer}`" for table in tables[:3])
    return names + (f" and {len(tables) - 3} more" if len(tables) > 3 else "")


def _evidence_of(tables: Sequence[Embedding]) -> dict[str, Scalar]:
    return {
        "layer": ", ".join(table.layer for table in tables),
        "table_bytes": sum(table.table_bytes for table in tables),
    }


UPDATE_COMPUTE = Threshold("device compute", 30.0, "% of the step", "own choice, where not timed")
COSTLY = Threshold("size of tables that were timed", 5.0, "MB", "measured: 2.6 MB gave 1.05x")
DENSE_EMBEDDING_UPDATE = _tables_rule(
    title="Update only the embedding rows that a step looks up",
    why="Adam, RMSprop, momentum and weight decay update every row in each step: their time grows "
    "with the table, not with the batch.",
    fix="Use a row-wise Adam such as `pipediag.optimizers.LazyAdam`, or SGD for the tables only. "
    "Rows are then updated only in steps that look them up, so tune the learning rate again.",
    thresholds=(LARGE, COSTLY, OPERATION_SHARE, UPDATE_COMPUTE, INPUT_BOUND),
    effect="changes a hyper-parameter",
)


ONE_PASS = Threshold("size of tables", 2.0, "MB", "measured: 0.5 MB gave 1.14x, 2.6 MB 1.24x")
FUSED_EMBEDDING_UPDATE = _tables_rule(
    title="Update embedding tables in fewer passes",
    why="Keras' Adam passes about ten times over each table and its moments in each step. With one "
    "kernel for them a step with a table of 13 MB took 5.1 ms instead of 12.7 ms, with equal "
    "losses.",
    fix="Compile with `pipediag.optimizers.FusedAdam`, or `FusedAdamW`: the results are those of "
    "Keras' own up to rounding.",
    thresholds=(ONE_PASS, OPERATION_SHARE, UPDATE_COMPUTE, INPUT_BOUND),
    effect="same up to order or rounding",
)


@FUSED_EMBEDDING_UPDATE.found_by
def _check_fused_embedding_update(session: Session) -> Iterator[Finding]:
    """Yield a finding on tables that Adam updates as a whole from sparse gradients."""
    tables = [one for one in _updated_from_rows(session) if one.table_bytes]
    edit = fused_update(session, f"{FUSED_EMBEDDING_UPDATE.id}:{FUSED}")
    size_mb = sum(one.table_bytes for one in tables) / 1e6
    if edit is None or size_mb < ONE_PASS.value:
        return
    yield _judged(
        FUSED_EMBEDDING_UPDATE,
        session,
        f"Compile with `pipediag.optimizers.{edit.label.partition(' ')[0]}`, which updates "
        f"{_names_of(tables)} in fewer passes, with the same results.",
        _evidence_of(tables),
        took_ms=_added(table.passes_ms for table in tables),
        edit=edit,
    )


def _updated_from_rows(session: Session) -> list[Embedding]:
    """Return the tables of which all rows are updated, though the gradient names some. A constraint
    passes over the whole table, whatever the optimizer does."""
    tables = (one for one in session.embeddings if one.trainable and not one.constraint)
    return [one for one in tables if one.update == "dense" and one.gradient == "sparse"]


@DENSE_EMBEDDING_UPDATE.found_by
def _check_dense_embedding_update(session: Session) -> Iterator[Finding]:
    """Yield a finding on all tables whose update matters, as one optimizer updates them all."""
    rule = DENSE_EMBEDDING_UPDATE
    tables = [one for one in session.embeddings if one.trainable and not one.constraint]
    from_rows = _updated_from_rows(session)
    edit, advice = row_wise_update(session, rule.id), _update_advice(session, from_rows)
    evidence: dict[str, Scalar] = {
        **_evidence_of(from_rows),
        "device_compute_percent_of_step": class_percent(session, ["device_compute"]),
    }
    took = percent_of_step(session, _added(table.passes_ms for table in from_rows))
    least = COSTLY if took is not None and took >= OPERATION_SHARE.value else LARGE
    if sum(table.table_bytes for table in from_rows) >= least.value * 1e6:
        yield _judged(
            rule,
            session,
            advice,
            evidence,
            took_ms=_added(table.passes_ms for table in from_rows),
            edit=edit,
            untried=no_row_wise(session),
        )
    elif unread := [table for table in large(tables) if table.update is None]:
        reason = unread[0].missing or f"Pipediag did not see how {unread[0].layer} is updated."
        yield rule.finding("inconclusive", reason, evidence={"layer": unread[0].layer})
    elif from_rows and edit is not None:
        # Tried last: the tables are small, and only a trial tells what that means.
        small = f"{advice} These tables are small."
        yield rule.finding("informative", small, evidence=evidence, edit=edit)


def _update_advice(session: Session, tables: Sequence[Embedding]) -> str:
    keras = session.keras
    own = (keras.optimizer if keras else None) or "The optimizer"
    # By which rule a loop of the script's own is to go on learning, only its author knows.
    how = "Use a row-wise optimizer in your loop, such as `pipediag.optimizers.LazyAdam`."
    how = f"{how} {PLAIN_SGD}" if keras is None else row_wise_advice(keras)
    seen = [one.rows_touched_per_step for one in tables if one.rows_touched_per_step is not None]
    looks_up = f", although it looks up only {sum(seen):,}" if len(seen) == len(tables) else ""
    return (
        f"{how} {own} updates all {sum(table.rows for table in tables):,} rows of "
        f"{_names_of(tables)} in each step{looks_up}."
    )


REGULARIZED_TABLE = _tables_rule(
    title="Regularise only the embedding rows that a step looks up",
    why="A regulariser adds all rows to the loss, so its gradient is as large as the table.",
    fix="Use `activity_regularizer` instead of `embeddings_regularizer`. Rows then shrink as often "
    "as they are looked up: another objective, which has to be tuned again.",
    thresholds=(LARGE, OPERATION_SHARE, UPDATE_COMPUTE, INPUT_BOUND),
    effect="changes a hyper-parameter",
)


@REGULARIZED_TABLE.found_by
def _check_regularized_table(session: Session) -> Iterator[Finding]:
    trained = [table for table in large(session.embeddings) if table.trainable]
    tables = [table for table in trained if table.regularizer and table.update == "dense"]
    if not tables:
        return
    # Where the script made the largest of those whose line is known.
    made_at = ((one.file, one.line) for one in tables if one.file and one.line)
    yield _judged(
        REGULARIZED_TABLE,
        session,
        f"Give {_names_of(tables)} `activity_regularizer` instead of `embeddings_regularizer`, "
        "which works on all rows.",
        {
            **_evidence_of(tables),
            "terms": ", ".join(sorted({f"{one.regularizer}" for one in tables})),
        },
        took_ms=_added(table.passes_ms for table in tables),
        place=next(made_at, None),
        untried="It is another objective, which you have to choose and to tune.",
    )


TABLE_COPIED_ON_LOOKUP = _tables_rule(
    title="Look up rows without copying the embedding table",
    why="Once rows of a variable have been written in place, TensorFlow copies the whole variable "
    "wherever it is read as a tensor, as Keras' `Embedding` does before it gathers.",
    fix="Look up rows in the variable itself, in a layer whose `call` is `tf.nn.embedding_lookup("
    "self.embeddings.value, ids)`, or compile with `jit_compile=True`, which rounds differently.",
    thresholds=(LARGE, OPERATION_SHARE),
    effect="same up to order or rounding",
)


@TABLE_COPIED_ON_LOOKUP.found_by
def _check_table_copied_on_lookup(session: Session) -> Iterator[Finding]:
    """Yield a finding on all tables that are copied, as one edit is for them all."""
    rule, loop = TABLE_COPIED_ON_LOOKUP, known(session.diagnosed_loop())
    tables = [table for table in large(session.embeddings) if _moved_bytes(table)]
    if not tables:
        return
    percent = percent_of_step(session, _added(table.copy_ms for table in tables))
    moved = sum(map(_moved_bytes, tables))
    advice = (
        f"{rule.fix} If a mixed-precision policy casts the table, create the weight with "
        f"`autocast=False`. Each step copies or casts {moved / 1e6:.0f} MB, all of "
        f"{_names_of(tables)}."
    )
    informs = input_first(session)
    if percent is None or percent < OPERATION_SHARE.value:
        informs = advice
    elif all(table.update == "dense" for table in tables):
        informs = f"{advice} The update passes over the same tables more often: fix that first."
    moves = {"copied_bytes_per_step": moved, "copy_percent_of_step": percent}
    yield rule.finding(
        "fail",
        advice,
        unless=informs,
        evidence={**_evidence_of(tables), **moves},
        edit=compiled_by_xla(session, f"{rule.id}:copy"),
        place=(loop.file, loop.line) if informs is None else None,
        speedup_at_most=None if percent is None else at_most_without(session, percent),
        untried=NO_MODEL_EDIT,
    )


def _moved_bytes(table: Embedding) -> int:
    """Return the bytes that a step copies, and those that casts of the whole table read."""
    cast = table.table_bytes * table.whole_table_operations.get("Cast", 0)
    return (table.copied_bytes_per_step or 0) + cast


# Metrics that cost more than training

METRICS_SHARE = Threshold("metrics alone", 20.0, "% of the step", "measured: 13 % gained nothing")
TRAINING_METRICS = Rule(
    id="training-metrics",
    title="Compute costly metrics in validation alone",
    why="A metric over all candidates multiplies each batch by the whole table: 63 % of the "
    "compute with 40,000 items.",
    fix="Leave the metric out of the training step (`compute_metrics=not training` in a task of "
    "TensorFlow Recommenders), or update it in every n-th step.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(METRICS_SHARE, INPUT_BOUND),
    frees=("device_compute",),
    untried="Pipediag does not change which metrics your step computes.",
)


@TRAINING_METRICS.found_by
def _check_training_metrics(session: Session) -> Iterator[Finding]:
    took_ms = session.metrics_ms
    if took_ms is None or (percent_of_step(session, took_ms) or 0.0) < METRICS_SHARE.value:
        return
    advice = (
        f"Compute the metrics in validation alone, or in every n-th step: {took_ms:.3g} ms of each "
        "training step are operations that nothing else needs."
    )
    yield _judged(TRAINING_METRICS, session, advice, {}, took_ms=took_ms)


# A softmax over all classes of a large vocabulary

CLASSES = Threshold("classes of a vocabulary", 5000.0, "classes", "own choice: ten times as many")
SAMPLED = 512
"""Own choice of classes to draw: so few that the products are small next to those of a vocabulary
of ten thousands."""
FULL_SOFTMAX = Rule(
    id="full-softmax",
    title="Train with a sampled softmax",
    why="For one correct class per example, each step computes logits and gradients of all "
    "classes. That time grows with the vocabulary.",
    fix="Use `tf.nn.sampled_softmax_loss` in training, with a few hundred sampled classes, and the "
    "full softmax for evaluation; docs/embeddings.md has the code. Validate the accuracy.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(CLASSES, OPERATION_SHARE, INPUT_BOUND),
    effect="changes a hyper-parameter",
    frees=("device_compute",),
    untried="The model has to be built without its last layer, and with a loss of its own.",
)


@FULL_SOFTMAX.found_by
def _check_full_softmax(session: Session) -> Iterator[Finding]:
    """Yield a finding on the only softmax: of several, the profile has no times."""
    softmaxes = known(session.diagnosed_loop()).softmaxes
    if len(softmaxes) != 1 or softmaxes[0].classes <= SAMPLED:
        return
    (softmax,), took_ms = softmaxes, session.vocabulary_ms
    advice = (
        f"Train with `tf.nn.sampled_softmax_loss(weights, biases, labels, inputs, {SAMPLED}, "
        f"{softmax.classes})`, with weights of the shape ({softmax.classes}, {softmax.features}), "
        "and evaluate with the full softmax; docs/embeddings.md has the code. The model learns "
        "differently, so validate it. At present, each step multiplies by all "
        f"{softmax.classes} classes of `{softmax.weights}`, in the forward pass and for two "
        "gradients."
    )
    evidence = {"device_compute_percent_of_step": class_percent(session, ["device_compute"])}
    if took_ms is None or softmax.classes < CLASSES.value:
        yield FULL_SOFTMAX.finding("informative", advice, evidence=evidence)
        return
    gone_ms = _gone_ms(session, softmax, took_ms)
    yield _judged(FULL_SOFTMAX, session, advice, evidence, took_ms=took_ms, gone_ms=gone_ms)


def _gone_ms(session: Session, softmax: Softmax, took_ms: float) -> float | None:
    """Return the time of a step that goes with it at most: passes over tied weights, too.

    A sampled softmax gives rows, which an optimizer may update alone.
    """
    passes = _added(
        table.passes_ms
        for table in session.embeddings
        if (table.variable or "").removesuffix(":0") == softmax.weights
        and {table.rows, table.dim} == {softmax.classes, softmax.features}
    )
    return class_ms(session, ["device_compute"]) if passes is None else took_ms + passes


# Ids that are not what was meant: outside the table, rounded by a float type, or masked

_ids_rule = partial(
    Rule,
    id="embedding-ids",
    severity="error",
    effect="corrects results",
    subject="correctness",
    untried="It affects what the model learns, which a speed trial can't show.",
)


def _seen(session: Session) -> list[tuple[Embedding, EmbeddingIds]]:
    return [(table, table.ids) for table in session.embeddings if table.ids is not None]


IDS_OUTSIDE_TABLE = _ids_rule(
    title="Look up only ids that are in the embedding table",
    why="On a CPU, a lookup of an id outside the table raises an error. On a GPU it returns zeros "
    "and trains nothing, and XLA on a CPU uses the last row, both without an error.",
    fix="Set `input_dim` to at least the largest id plus one, or map the ids into the table.",
    needs=(),
)


@IDS_OUTSIDE_TABLE.found_by
def _check_ids_outside_table(session: Session) -> Iterator[Finding]:
    seen = _seen(session)
    if session.embeddings and not seen:
        reason = session.embeddings[0].ids_missing or "No batch was inspected."
        yield IDS_OUTSIDE_TABLE.finding("inconclusive", reason)
    for table, ids in seen:
        if ids.outside:
            examples = ", ".join(f"{id} in batch {batch}" for batch, id in ids.outside_examples)
            yield IDS_OUTSIDE_TABLE.finding(
                "fail",
                f"Make the table larger, or correct the ids. `{table.layer}` has rows 0 to "
                f"{table.rows - 1}, but was looked up with ids outside that range: {examples}. A "
                "GPU returns zeros for them, XLA on a CPU the last row, and Keras 3 counts "
                "negative ids from the end of the table, all without an error.",
                evidence={
                    "layer": table.layer,
                    "ids_outside": ids.outside,
                    "lookups": ids.lookups,
                },
            )


COLLIDING_IDS = _ids_rule(
    title="Keep ids as integers until the embedding lookup",
    why="A float holds integers exactly up to 256 in bfloat16 and up to 2,048 in float16. Keras "
    "casts inputs to floats if the model has no `Input` with an integer `dtype`.",
    fix='Put `keras.Input(shape, dtype="int32")` before the Embedding.',
    needs=("loop",),
)
_EXACT_BITS = {"bfloat16": 8, "float16": 11, "float32": 24, "float64": 53}
"""Bits of a float's significand: integers up to two to that power are exact (IEEE 754; bfloat16 as
TensorFlow has it)."""


@COLLIDING_IDS.found_by
def _check_colliding_ids(session: Session) -> Iterator[Finding]:
    for table, ids in _seen(session):
        bits = _EXACT_BITS.get(ids.cast_through or "")
        if bits is None or table.rows - 1 <= 2**bits:
            continue
        yield COLLIDING_IDS.finding(
            "fail",
            'Put `keras.Input(..., dtype="int32")` before the Embedding, so that ids stay '
            f"integers. On their way to `{table.layer}`, they pass {ids.cast_through}, which "
            f"rounds integers above {2**bits}: some of the {table.rows} rows can't be reached.",
            evidence={"layer": table.layer},
        )


MASKED_TOKEN = _ids_rule(
    title="Reserve id 0 for padding with `mask_zero`",
    why="Layers after the Embedding skip what is masked, so the token with id 0 is never seen.",
    fix="Start ids at 1 with an `input_dim` one larger, or set a `mask_token` in the lookup layer.",
    needs=("loop",),
    thresholds=(WITHIN,),
)


@MASKED_TOKEN.found_by
def _check_masked_token(session: Session) -> Iterator[Finding]:
    for table, ids in _seen(session):
        if not masks_a_token(table):
            continue
        yield MASKED_TOKEN.finding(
            "fail",
            f"Start token ids at 1, or remove `mask_zero`. {ids.zeros_within} of {ids.lookups} ids "
            f"of `{table.layer}` are zeros between other ids of their row.",
            evidence={"layer": table.layer, "zeros_within_percent": within_percent(ids)},
        )
