"""Python that makes the input: generators, maps, PyDatasets, and what runs while tracing."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from pipediag.facts.limits import INPUT_WAIT, OPERATION_SHARE, Threshold, bound
from pipediag.facts.machine import cpus
from pipediag.facts.pipeline import (
    call_name,
    calls_python,
    costlier,
    delay_ms,
    following_batch,
    operations,
    place_name,
    upstream,
    uses,
)
from pipediag.facts.python_callables import (
    WAITS_FIRST,
    call_times,
    hottest_line_sentence,
    only_python,
    python_calls,
    python_evidence,
    waits_first,
)
from pipediag.rules.parallel_maps import ON_THREADS, WAITING_CALLS, on_threads
from pipediag.rules.reading import opened_at_once, opens_in_turn, reordering
from pipediag.rules.relevance import input_first, less_input, weigh, weigh_input
from pipediag.rules.rule import Place, Rule, pipeline_rule
from pipediag.session.edits import Edit, Remove, Replace, RewriteCall, SetOptions
from pipediag.session.findings import Finding
from pipediag.session.model import HotLine, Session, hot_line
from pipediag.session.pipeline import Operation
from pipediag.session.recorded_loops import KerasUse
from pipediag.session.recording import RecordedFunction
from pipediag.tensorflow_names import PYTHON_ADAPTERS, PYTHON_OPERATIONS, random_operations

# Generators of `from_generator`: slow calls in them, and single elements

# Sums that are kept say nothing of a draw without replacement.
_DRAWS = re.compile(
    r"\bchoice\((?!.*(\breplace\s*=|,)\s*False\b)"
    r"(.*\bp\s*=|([^()]|\([^()]*\))*,\s*True\s*,)"
)
_ROWS = re.compile(r"\bfor\b.*\.iterrows\(\)")
# Keras's `load_img`, `pad_sequences` and such are no calls of TensorFlow.
_PLAIN = r"data\b|(keras\.)?(utils|preprocessing)\b|.*\bpreprocess_input\("
_TENSORFLOW = re.compile(rf"\b(tf|keras|K)\.(?!{_PLAIN})\w+.*\(|\.numpy\(\)")
KNOWN: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        _DRAWS,
        "Keep the cumulative sums of the weights, which each call adds up anew, and search in them "
        "(`sums.searchsorted(rng.random(n), side='right')`)",
    ),
    (
        re.compile(r"\bnp\.random\.choice\((?!.*\bp\s*=).*\breplace\s*=\s*False"),
        "Draw from a Generator, `np.random.default_rng().choice(..., replace=False)`: the older "
        "function permutes all numbers in each call",
    ),
    (
        re.compile(r"\bchoices\(.*(?<!cum_)\bweights\s*="),
        "Give `choices` the sums of the weights, made once (`itertools.accumulate`), as "
        "`cum_weights`: each call adds up all weights anew",
    ),
    (
        re.compile(r"\bjson\.loads?\("),
        "Parse the data once and store it, or use a faster parser (orjson)",
    ),
    (
        _ROWS,
        "Iterate over dictionaries (`itertuples`), or take NumPy arrays of the columns once: "
        "`iterrows` makes a Series of each row, which takes ten times as long",
    ),
    (
        re.compile(r"\.iterrows\(|\.i?loc\[|\.iat\["),
        "Take NumPy arrays of the columns once (`frame['x'].to_numpy()`) and index those: each "
        "access creates a row of a DataFrame",
    ),
    (
        re.compile(r"\bnp\.(append|concatenate|vstack|hstack)\("),
        "Collect rows in a list, or write into one array: each call copies the whole array",
    ),
    (re.compile(r"\bhashlib\.|\.hexdigest\(|\bmd5\("), "Hash each text once, before training"),
    (
        re.compile(r"\bto_categorical\(|\bnp\.eye\("),
        "Yield ids instead of one-hot rows: for targets with `sparse_categorical_crossentropy`, "
        "for features with an `Embedding` in front of the model",
    ),
    (
        _TENSORFLOW,
        "Use NumPy here, or map whole batches: an eager TensorFlow call takes tens of microseconds",
    ),
)
"""Lines that are known to be slow, and what to do instead."""
_OF_STEPS = [one for one in KNOWN if one[0] is not _TENSORFLOW]
"""Slow lines that are no part of a training step itself."""
_REWRITTEN = {
    _DRAWS: "cumulative weights kept, for the choice",
    _ROWS: "dictionaries instead of the Series of iterrows",
}
"""Edits of slow lines that are rewritten."""

LINE_SHARE = Threshold("samples on its line", 5.0, "% of those in this Python", "own choice")
SLOW_CALL = Rule(
    id="slow-python-call",
    title="Replace a slow Python call",
    why="NumPy's `choice` with weights took 131 of 157 ms of a step of 512 words, and under 5 ms "
    "once the sums of its weights were kept.",
    fix="Replace the call, or make it once for many rows.",
    needs=("loop", "pipeline", "steps", "breakdown", "host"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, LINE_SHARE),
    effect="not known",
    untried="Pipediag does not rewrite this call.",
    frees=("input_wait",),
)


@SLOW_CALL.found_by
def _check_slow_call(session: Session) -> Iterator[Finding]:
    """Yield findings on slow lines of a generator; nothing where other Python makes input as well,
    to which a line may belong."""
    op = _generator(session)
    if op is None or (weight := weigh(session, op)).status != "fail":
        return
    own = _hot_lines(session, "source")
    sampled = sum(one.percent for one in own)
    for line, taken, given in _slow_lines(SLOW_CALL, own, KNOWN, op.id):
        yield SLOW_CALL.finding(
            op=op,
            weight=weight,
            evidence={"line_percent_of_samples": line.percent},
            speedup_at_most=_without(session, op, taken / sampled),
            **given,
        )


SLOW_CALL_IN_STEP = replace(
    SLOW_CALL,
    needs=("loop", "steps", "breakdown", "host"),
    thresholds=(OPERATION_SHARE, LINE_SHARE),
    frees=("python",),
)


@SLOW_CALL_IN_STEP.found_by
def _check_slow_call_in_step(session: Session) -> Iterator[Finding]:
    """Yield findings on slow lines of the script's own loop; in Keras's, these are of callbacks."""
    loop, own = session.diagnosed_loop(), _hot_lines(session, "main")
    if loop is None or loop.kind == "keras":
        return
    for _, taken, given in _slow_lines(SLOW_CALL_IN_STEP, own, _OF_STEPS, None):
        if taken >= OPERATION_SHARE.value:
            yield SLOW_CALL_IN_STEP.finding(
                unless=input_first(session),
                evidence={"line_percent_of_samples": taken},
                speedup_at_most=bound(100.0, taken),
                **given,
            )


def _slow_lines(
    rule: Rule,
    own: Sequence[HotLine],
    calls: Sequence[tuple[re.Pattern[str], str]],
    op_id: str | None,
) -> Iterator[tuple[HotLine, float, dict[str, Any]]]:
    """Yield known slow lines, the percent of samples in each and those alike, which one edit
    rewrites together, and fields of the finding."""
    for line, advice in _slowest_known(own, LINE_SHARE.value, calls):
        ways = (how for call, how in _REWRITTEN.items() if call.search(line.code or ""))
        rewritten, edit, name = next(ways, None), None, Path(line.file).name
        alike = [line.line]
        if rewritten is not None:
            alike = sorted({line.line, *_draws_beside(line, own)})
            changes = [RewriteCall(op_id, line.file, one, line.function) for one in alike]
            label = f"{rewritten} at {name}:{' and '.join(map(str, alike))}"
            edit = rule.edit(f"{name}:{line.line}", label, *changes)
        taken = sum(one.percent for one in own if one.line in alike and one.file == line.file)
        given = {"status": "fail", "advice": f"{advice} ({name}:{line.line}).", "edit": edit}
        effect = "same results" if edit is not None else None
        yield line, taken, {**given, "effect": effect, "place": (line.file, line.line)}


def _draws_beside(line: HotLine, own: Sequence[HotLine]) -> list[int]:
    """Return the lines of the function that draw with weights and replacement, if the line does."""
    beside = [one for one in own if (one.file, one.function) == (line.file, line.function)]
    beside = [one for one in beside if _DRAWS.search(one.code or "")]
    return [one.line for one in beside] if line in beside else []


def _hot_lines(session: Session, thread: str) -> list[HotLine]:
    """Return the lines in which Python was seen: generators' (`source`) or the loop's (`main`)."""
    hot = session.host.hot_python if session.host is not None else []
    return [line for line in hot if line.thread == thread]


def _slowest_known(
    own: Sequence[HotLine], least_percent: float, calls: Sequence[tuple[re.Pattern[str], str]]
) -> list[tuple[HotLine, str]]:
    """Return the known slow line that runs most, with what to do instead, and behind it the one
    that runs most of those that are rewritten, if that is another.

    Lines that run for less than that part of all lines together do not count.
    """
    least = least_percent / 100.0 * sum(line.percent for line in own)
    known = [
        (line, advice)
        for line in sorted(own, key=lambda one: -one.percent)
        if line.percent >= least
        for pattern, advice in calls
        if pattern.search(line.code or "")
    ]
    rewritten = [one for one in known if any(way.search(one[0].code or "") for way in _REWRITTEN)]
    return [*known[:1], *(one for one in rewritten[:1] if one != known[0])]


def _generator(session: Session) -> Operation | None:
    """Return the one generator whose Python makes all input, which may be one of Keras's."""
    own = next(iter(operations(session, "from_generator")), None)
    if own is not None:
        return own if only_python(session, own) else None
    return None if any(map(calls_python, operations(session))) else _generator_of_keras(session)


def _generator_of_keras(session: Session) -> Operation | None:
    """Return the generator that Keras makes of what it is given."""
    made = (op for op in session.ops if op.made_by_framework and op.helper is None)
    return next((op for op in made if op.kind == "from_generator"), None)


def _running_line(session: Session, op: Operation) -> Place:
    """Return the line that a generator is seen in most often, or that of the dataset's call."""
    line = hot_line(session.host, "source") if only_python(session, op) else None
    return (line.file, line.line) if line else (op.file, op.line)


def _without(session: Session, op: Operation, part: float = 1.0) -> float | None:
    """Return the upper bound on the gain without that part of an operation's time."""
    delay = delay_ms(session, op)
    return None if delay is None else less_input(session, part * delay, on_cpu=False)


ELEMENTS = Threshold("elements per step", 4.0, "elements", "own choice: fewer cost < 1 ms")
SINGLE_ELEMENTS = pipeline_rule(
    id="generator-elements",
    title="Take many elements from the generator at once",
    why="Each element that TensorFlow took from Python cost 0.25 ms, whatever was in it. In "
    "stacks of 64, which `unbatch` splits again, it cost 0.015 to 0.03 ms.",
    fix="Yield stacks of elements, and split them with `unbatch`. Up to 63 are read ahead.",
    thresholds=(INPUT_WAIT, OPERATION_SHARE, ELEMENTS),
)
_STACKED = 64


def _elements_edit(op: Operation) -> Edit | None:
    few = op.elements is None or op.elements < ELEMENTS.value
    if op.made_by_framework or op.inside_function_of is not None or few:
        return None
    change = Replace(op.id, "in_chunks", {"elements": _STACKED})
    label = f"{_STACKED} elements of the {place_name(op)} at once"
    return SINGLE_ELEMENTS.edit(op, label, change, check="equal")


@SINGLE_ELEMENTS.found_at("from_generator")
def _check_single_elements(session: Session, op: Operation) -> Iterator[Finding]:
    stacks = any(one.kind == "unbatch" and one.parent_ids == [op.id] for one in session.ops)
    weight, edit = weigh(session, op), _elements_edit(op)
    if weight.status == "fail" and edit is not None and not stacks:
        yield SINGLE_ELEMENTS.finding(
            "fail",
            f"Yield {_STACKED} elements of {call_name(op)} at once, stacked with NumPy, and split "
            "them with `unbatch`.",
            op=op,
            place=_running_line(session, op),
            weight=weight,
            evidence={"elements_per_step": op.elements},
            edit=edit,
            speedup_at_most=_without(session, op),
        )


PYTHON_INPUT = Rule(
    id="python-input",
    title="Speed up the Python that makes the batches",
    why="One thread calls a generator, or `__getitem__`, for one element after another, and takes "
    "the GIL from the training loop. A step of 8.3 ms with 9 % input wait fell to 3.0 ms.",
    fix="Build whole batches with NumPy or in tf.data, or read several parts at once: `interleave` "
    "of generators, which alternate, or `workers=N` of a PyDataset that is thread-safe.",
    needs=("loop", "steps", "breakdown"),
    thresholds=(INPUT_WAIT, OPERATION_SHARE, WAITS_FIRST),
    effect="same up to order or rounding",
    frees=("input_wait", "python"),
    untried="The source has to be rewritten, or run in other processes.",
)
_MOST_THREADS = 16
_KERAS_QUEUE = 10
"""Keras's own `max_queue_size`: enough for workers of a small number."""
_MOST_OF_IT = 50.0
"""Percent of the samples in the generator's Python. Own choice."""
_REWRITE = "Build each batch with whole-array NumPy or in tf.data instead of Python loops."


@PYTHON_INPUT.found_by
def _check_python_input(session: Session) -> Iterator[Finding]:
    """Yield findings; a line that is known to be slow and takes most of it goes before them."""
    lines = _hot_lines(session, "source") if _generator(session) is not None else []
    first = SLOW_CALL.id if _slowest_known(lines, _MOST_OF_IT, KNOWN) else None
    for finding in _python_inputs(session):
        yield finding.model_copy(update={"needs_first": first})


def _python_inputs(session: Session) -> Iterator[Finding]:
    keras, generators = session.keras, operations(session, "from_generator")
    adapter = keras.data_adapter if keras is not None else None
    if keras is not None and (
        adapter == "PyDatasetAdapter" or (not generators and adapter in PYTHON_ADAPTERS)
    ):
        yield _of_keras(session, keras)
        return
    for op in generators:
        outer = session.operation(op.inside_function_of)
        if outer is None or opens_in_turn(outer):
            yield _of_generator(session, op, outer)


def _of_generator(session: Session, op: Operation, outer: Operation | None) -> Finding:
    calls, batch = python_calls(op), following_batch(session, op)
    wall_ms = calls.wall_ms if calls is not None else None
    weight = weigh(session, costlier(session, op, outer), wall_ms)
    finding = partial(
        PYTHON_INPUT.finding,
        op=op,
        weight=weight,
        evidence={**python_evidence(op), "elements_per_step": op.elements},
    )
    if weight.status != "fail":
        return finding("pass" if weight.status == "informative" else weight.status, weight.sentence)
    rewrite = _REWRITE
    if batch is not None and batch.kind == "batch" and batch.parent_ids == [op.id]:
        size = batch.parameters.get("batch_size") or "a whole batch of"
        rewrite = (
            f"Let the generator of {call_name(op)} yield arrays of {size} rows, with None as the "
            "first axis in its output_signature, and remove the `batch`."
        )
    at_once, edit = _several_at_once(session, op, outer)
    ways = [rewrite, at_once]
    # What overlaps waits goes first where the calls were off the CPU for a good part of their time.
    first, second = reversed(ways) if waits_first(op) else ways
    measured = call_times(op) + hottest_line_sentence(session)
    advice = f"{first} Or {second[0].lower()}{second[1:]}{measured}"
    given: dict[str, Any] = {"advice": advice, "edit": on_threads(edit)}
    if outer is not None:
        given = reordering(session, outer, **given)
    return finding(
        "fail",
        place=_running_line(session, op),
        **given,
    )


def with_rewriting(session: Session, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings, and beside each refuted trial of Python that makes the input what is
    left to do: that several calls at once gain nothing does not say so of fewer of them.

    Where another edit of the same operation was confirmed, that is what to do.
    """
    found: list[Finding] = []
    helped = {one.op_id for one in findings if one.trial.state == "confirmed"}
    for one in findings:
        refuted = one.rule == PYTHON_INPUT.id and one.dropped
        if refuted and one.edit is not None and one.op_id not in helped:
            tried = f"{one.edit.label}: {one.trial.speedup or 1.0:.3g}x"
            to_rewrite = PYTHON_INPUT.finding(
                "fail",
                f"{_REWRITE} Several calls at once gained nothing ({tried}): for Python that "
                f"computes, the GIL is the usual reason.{call_times(session.operation(one.op_id))}"
                f"{hottest_line_sentence(session)}",
                op_id=one.op_id,
                place=(one.file, one.line),
                evidence={**one.evidence, "also_tried": tried},
                speedup_at_most=one.speedup_at_most,
            )
            found.append(to_rewrite)
        found.append(one)
    return found


def _several_at_once(session: Session, op: Operation, outer: Operation | None) -> tuple[str, Edit]:
    """Return several generators, or two copies: how one can be divided only its author knows."""
    id, stacked = f"{PYTHON_INPUT.id}:{op.id}", _elements_edit(op)
    if outer is not None:
        # As many as there are: waiting takes no CPU, so the CPUs do not bound their number.
        counts = [one.cardinality or 0 for one in upstream(session, outer)]
        count = max(2, min([WAITING_CALLS, *(count for count in counts if count > 0)]))
        cycle = outer.parameters.get("cycle_length")
        if outer.kind == "interleave" and isinstance(cycle, int) and cycle > 1:
            count = cycle
        caveat = "Elements of several generators alternate."
        edit = opened_at_once(outer, count, count, "generators", id, caveat=caveat)
        return f"Read several generators at once ({edit.label}), with {ON_THREADS}.", edit
    edit = Edit(
        id,
        f"two copies of the {place_name(op)} in parallel",
        (Replace(op.id, "interleave", {"cycle_length": 2, "num_parallel_calls": 2}),),
        # Elements in stacks are a patch, which copies are not.
        instead_of=stacked.id if stacked is not None else None,
        caveat="Both copies read all of the data: two halves would gain this at most.",
    )
    return (
        f"Let the generator of {call_name(op)} take a part of the data as an argument, and read "
        "several parts at once: `tf.data.Dataset.range(n).interleave(lambda part: "
        "tf.data.Dataset.from_generator(..., args=(part,)), cycle_length=n, "
        f"num_parallel_calls=n)`, with {ON_THREADS}."
    ), edit


def _of_keras(session: Session, keras: KerasUse) -> Finding:
    op, weight = _generator_of_keras(session), weigh_input(session)
    line = hot_line(session.host, "source")
    finding = partial(
        PYTHON_INPUT.finding,
        op_id=op.id if op is not None else None,
        place=(line.file, line.line) if line else (keras.source_file, keras.source_line),
        weight=weight,
        evidence=python_evidence(op),
    )
    if weight.status != "fail":
        return finding("pass", weight.sentence)
    measured, hottest = call_times(op), hottest_line_sentence(session)
    if keras.data_adapter != "PyDatasetAdapter":
        return finding("fail", f"{_REWRITE}{measured}{hottest}")
    cheaper = f"{_REWRITE}{hottest}"
    workers = 1 if keras.workers is None else keras.workers
    if workers > 1 or (workers > 0 and keras.use_multiprocessing):
        return finding("fail", f"{keras.workers} workers already read it. {cheaper}")
    # Waiting takes no CPU, so the CPUs do not bound how many wait at once.
    as_cpus = max(2, min(_MOST_THREADS, int(cpus(session))))
    workers = WAITING_CALLS if waits_first(op) else as_cpus
    queue = 2 * workers if 2 * workers > _KERAS_QUEUE else None
    size = f" and `.max_queue_size = {queue}`" if queue else ""
    where = f"set `.workers = {workers}`{size} on the object before `fit`"
    if keras.source_file is not None:
        size = f", max_queue_size={queue}" if queue else ""
        where = f"`super().__init__(workers={workers}{size})` in the class"
    threads = (
        f"Call `{keras.source}.__getitem__` from several threads: {where}. If that does not help, "
        "`use_multiprocessing=True` uses processes instead, which must not call TensorFlow."
    )
    both = [threads] if waits_first(op) else [cheaper, f"Or c{threads[1:]}"]
    return finding(
        "fail",
        f"{' '.join(both)}{measured}",
        edit=None if op is None else _workers_edit(session, op, keras, workers, queue),
        untried="Pipediag did not record how Keras reads the PyDataset.",
    )


def _workers_edit(
    session: Session, op: Operation, keras: KerasUse, workers: int, queue: int | None
) -> Edit:
    """Return reading by threads; with them, Keras appends no prefetch and leaves tf.data one."""
    queued = {} if queue is None else {"max_queue_size": queue}
    behind = (one for one in session.ops if one.parent_ids == [op.id] and one.made_by_framework)
    source = Path(keras.source_file).name if keras.source_file else "the script"
    return PYTHON_INPUT.edit(
        op,
        f"workers={workers} for the PyDataset `{keras.source}` in {source}",
        Replace(op.id, "PyDataset", {"workers": workers, **queued}),
        *(Remove(one.id) for one in behind if one.kind == "prefetch"),
        SetOptions({"autotune.enabled": False, "threading.private_threadpool_size": 1}),
        caveat="Measured with threads; processes were not tried.",
    )


TRACE_ONLY_PYTHON = Rule(
    id="trace-only-python",
    title="Replace Python that runs only while the function is traced",
    why="tf.data traces the function into a graph once and runs the graph. Such Python costs "
    "nothing per element, and a number that it drew is the same for every element.",
    fix="Delete it, or use tf.random, tf.print or tf.io if it was meant to act on each element.",
    needs=("loop", "pipeline"),
    severity="info",
    subject="correctness",
    untried="Removing it changes no speed, so there is nothing to measure.",
)
_CLOCKS = ("time", "perf_counter", "perf_counter_ns", "monotonic", "monotonic_ns")
_IDLE = {"print", "open", "input", "time.sleep", *(f"time.{name}" for name in _CLOCKS)}
_DRAWING = ("numpy.random.", "random.")


@TRACE_ONLY_PYTHON.found_by
def _check_trace_only_python(session: Session) -> Iterator[Finding]:
    # Removed operations count too: TensorFlow drops a map that is nothing without its Python.
    for op in session.ops:
        idle = [] if op.function is None or op.made_by_framework else _idle(op.function)
        if idle:
            yield TRACE_ONLY_PYTHON.finding(
                "informative",
                f"Delete `{'`, `'.join(idle)}` in the function of {call_name(op)}, or use "
                "TensorFlow operations such as tf.random.stateless_uniform: it ran while the "
                "function was traced, not for each element.",
                op=op,
            )


def _idle(function: RecordedFunction) -> list[str]:
    """Return the calls that leave no operation in the graph, which is called instead of them."""
    graph_ops, calls = function.graph_ops, function.python_calls
    if uses(function, PYTHON_OPERATIONS):
        return []
    idle = {*calls} & (_IDLE - {"print"} if "PrintV2" in graph_ops else _IDLE)
    stateless = any(name.startswith("StatelessRandom") for name in graph_ops)
    if not stateless and not random_operations(graph_ops):
        idle |= {name for name in calls if name.startswith(_DRAWING)}
    return sorted(idle)
