"""A loss that takes a softmax over all classes of a large vocabulary for a few labels."""

from __future__ import annotations

from pipediag.facts.embedding_cost import hidden, part_ms
from pipediag.facts.keras_version import keras_3
from pipediag.facts.limits import INPUT_BOUND, OPERATION_SHARE, Threshold
from pipediag.facts.machine import cpus
from pipediag.facts.step import class_ms
from pipediag.rules.embedding.computed_tables import computed_percent, judged_by_compute
from pipediag.rules.model_edits import drawn_classes
from pipediag.rules.rule import Meta
from pipediag.session.edits import Edit
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop, Softmax
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar, TablePart

CLASSES = Threshold(
    "classes of a large vocabulary",
    5000.0,
    "classes",
    "own choice: ten times as many as are drawn in their place; of fewer the rule only informs",
)
CPU_RATE = Threshold(
    "rate at which a CPU's core is taken to multiply",
    0.2,
    "billion operations a ms",
    "own choice: more than AVX-512 does at 3 GHz, 192 billion a second; others take longer",
)
GPU_RATE = Threshold(
    "rate at which a GPU is taken to multiply",
    500.0,
    "billion operations a ms",
    "own choice: NVIDIA states 495 trillion a second for an H100 in TF32; others take longer",
)
CPU_MEMORY = Threshold(
    "rate at which a CPU's memory is taken to be read and written",
    20.0,
    "MB a ms",
    "own measurement on two cores: a copy of 256 MB, which reads and writes them, took 24 ms",
)
GPU_MEMORY = Threshold(
    "rate at which a GPU's memory is taken to be read and written",
    4000.0,
    "MB a ms",
    "own choice: NVIDIA states 4.8 TB a second for an H200; others take longer",
)
COMPUTE = Threshold(
    "device compute",
    30.0,
    "% of the step",
    "own choice: the products are computed on the device, and below this even all of them gain "
    "little",
)
_SAMPLED = 512
"""Own choice of classes to draw, for the advice: as few as leave the products small beside those of
a vocabulary of ten thousands."""
_PER_PRODUCT = 2
"""A multiplication and an addition."""
_PRODUCTS = 3
"""The logits, and the gradients of what they are made of: features and weights."""
_LOGITS_PASSED = 5
"""Logits are written and read, their gradient is written and read by two products."""
_WEIGHTS_PASSED = 5
"""Weights are read by two products, their gradient is written and read, and they are written."""
_NUMBER_BYTES = 4
_ROWS: tuple[TablePart, ...] = ("gradient", "update")
META = Meta(
    id="full-softmax",
    name="Full softmax",
    title_failed="Each step takes a softmax over a whole vocabulary",
    title_passed="No softmax over a large vocabulary takes a part of the step that matters",
    looks_at="The graph of the traced step: whether the logits of a softmax cross-entropy are a "
    "product with a variable that has a row for each of very many classes, and how many "
    "multiplications and numbers in memory that takes.",
    why="The logits of all classes, their gradient and that of all weights are computed for one "
    "right class an example, in time that grows with the vocabulary. Labels as integers in place "
    "of one-hot ones save input, not this.",
    edit="`tf.nn.sampled_softmax_loss` in training, with a few hundred drawn classes beside the "
    "right ones, and the full softmax to evaluate; docs/embeddings.md has the code.",
    cost="What is learned differs: the loss is an estimate whose gradient is biased, the more so "
    "the fewer are drawn; its value can't be compared with that of the full softmax, which "
    "evaluation keeps. What that does to accuracy, no trial measures. The sampler takes low ids "
    "for frequent ones.",
    bound="None: the step with a sampled softmax is left to a trial. The share that is stated "
    "is measured where the profile tells logits and loss from the rest of the step; else it is the "
    "least that its products and its memory can take. At most these are saved, with gradient and "
    "update of the weights, which an optimizer may then do for rows alone.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(
        CLASSES,
        CPU_RATE,
        GPU_RATE,
        CPU_MEMORY,
        GPU_MEMORY,
        OPERATION_SHARE,
        COMPUTE,
        INPUT_BOUND,
    ),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    frees=("device_compute",),
    tried_when_informing=True,
)
_OWN_LOOP = (
    "Its loss is the script's own code, or that of another Keras than 3: pipediag can't change it "
    "for you."
)
_SEVERAL = "The model has several such losses, of which a trial could not change one alone."
_NO_MEMORY = (
    "There is no memory for a second set of these weights, with a row a class, and of the "
    "optimizer's slots, which a trial needs."
)


def check(session: Session) -> list[Finding]:
    """One finding for each such loss of the diagnosed loop."""
    loop = session.diagnosed_loop()
    all_of_them = loop.softmaxes if loop else []
    found = [one for one in all_of_them if one.classes > _SAMPLED]
    if loop is None or not all_of_them:
        return [META.finding("not-applicable", "No softmax loss was seen in a traced step.")]
    if not found:
        most = max(one.classes for one in all_of_them)
        return [META.finding("pass", "", evidence={"classes": most})]
    return [_finding(session, loop, one) for one in found]


def _finding(session: Session, loop: Loop, softmax: Softmax) -> Finding:
    percent = _least_percent(session, loop, softmax)
    evidence = _evidence(session, softmax, percent)
    took_ms = _took_ms(session, loop)
    # Where it was profiled that is said, and no second figure of it.
    advice = _advice(softmax, percent if took_ms is None else 0.0)
    if took_ms is None and percent < OPERATION_SHARE.value:
        unsure = "How much of the step that takes was not measured."
        edit = None if len(loop.softmaxes) > 1 else _edit(session, softmax)
        return META.finding("informative", f"{advice} {unsure}", evidence=evidence, edit=edit)
    if softmax.classes < CLASSES.value:
        edit = None if len(loop.softmaxes) > 1 else _edit(session, softmax)
        return META.finding("informative", advice, evidence=evidence, edit=edit)
    return judged_by_compute(
        META,
        session,
        COMPUTE,
        advice,
        evidence,
        took_ms=took_ms,
        gone_ms=_gone_ms(session, softmax, took_ms),
        edit=None if len(loop.softmaxes) > 1 else _edit(session, softmax),
        untried=_untried(session, loop),
    )


def _edit(session: Session, softmax: Softmax) -> Edit | None:
    weight_bytes = softmax.classes * softmax.features * _NUMBER_BYTES
    return drawn_classes(session, META.id, _SAMPLED, weight_bytes)


def _untried(session: Session, loop: Loop) -> str:
    """Why there is no edit, where there is none."""
    if len(loop.softmaxes) > 1:
        return _SEVERAL
    if keras_3(session) is None:
        return _OWN_LOOP
    return _NO_MEMORY


def _took_ms(session: Session, loop: Loop) -> float | None:
    """Of a step, as profiled; None where it was not told, or there is another such loss."""
    return part_ms(session, "vocabulary") or None if len(loop.softmaxes) == 1 else None


def _gone_ms(session: Session, softmax: Softmax, took_ms: float | None) -> float | None:
    """Of a step, with the dense gradient and the update of the weights: of a sampled softmax come
    rows, which an optimizer may update alone. All that is computed where their update was not told;
    None where nothing was."""
    cost = session.embedding_cost
    if took_ms is None or cost is None:
        return None
    names = {(softmax.weights, softmax.weights)} | {
        (table.layer, table.variable)
        for table in session.embeddings
        if (table.variable or "").removesuffix(":0") == softmax.weights
        and {table.rows, table.dim} == {softmax.classes, softmax.features}
    }
    own = [one.ms for one in cost.parts if (one.layer, one.variable) in names and one.part in _ROWS]
    if not own or hidden(cost, {(part, *name) for part in _ROWS for name in names}):
        return class_ms(session, ["device_compute"])
    return took_ms + sum(own)


def _least_percent(session: Session, loop: Loop, softmax: Softmax) -> float:
    """Of the step, at rates that are hardly surpassed; of one place an example where it is not
    known how many there are."""
    examples = loop.batch_size or (session.steps.batch_size if session.steps else None) or 1
    logits = examples * (softmax.positions or 1) * softmax.classes
    took = _multiplying_ms(session, softmax, logits) + _moving_ms(softmax, logits)
    step = session.steps.mean_ms if session.steps else 0.0
    return min(100.0, 100.0 * took / loop.replicas / step) if step else 0.0


def _multiplying_ms(session: Session, softmax: Softmax, logits: int) -> float:
    billions = _PRODUCTS * _PER_PRODUCT * logits * softmax.features / 1e9
    rate = GPU_RATE.value if _on_gpu(softmax) else CPU_RATE.value * cpus(session)
    return billions / rate


def _moving_ms(softmax: Softmax, logits: int) -> float:
    """Nothing where XLA compiles it, which may join what else goes through memory."""
    if softmax.compiled:
        return 0.0
    weights = softmax.classes * softmax.features
    numbers = _LOGITS_PASSED * logits + _WEIGHTS_PASSED * weights
    rate = GPU_MEMORY.value if _on_gpu(softmax) else CPU_MEMORY.value
    return numbers * _NUMBER_BYTES / 1e6 / rate


def _on_gpu(softmax: Softmax) -> bool:
    return "GPU" in (softmax.device or "")


def _advice(softmax: Softmax, percent: float) -> str:
    return (
        f"Train with `tf.nn.sampled_softmax_loss(weights, biases, labels, inputs, {_SAMPLED}, "
        f"{softmax.classes})`, and evaluate with the full softmax. The weights are then of the "
        f"shape ({softmax.classes}, {softmax.features}); docs/embeddings.md has the code. The loss "
        "is then another one, an estimate: what is learned differs, and what that does to accuracy "
        "was not measured, so validate it. Now it multiplies by all "
        f"{softmax.classes} classes of `{softmax.weights}` in each step, forwards and for two "
        f"gradients{_taking(percent)}."
    )


def _taking(percent: float) -> str:
    return f", which takes {percent:.0f} % of it at least" if percent >= 1 else ""


def _evidence(session: Session, softmax: Softmax, percent: float) -> dict[str, Scalar]:
    return {
        "weights": softmax.weights,
        "classes": softmax.classes,
        "features": softmax.features,
        "labels": softmax.labels,
        "least_percent_of_step": percent,
        "device_compute_percent": computed_percent(session),
    }
