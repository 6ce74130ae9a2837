"""Each kind of change, written into the source: as a trial makes them, in the same order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from pipediag.facts.pipeline import differs_by_pass, downstream, upstream_of
from pipediag.patching.batch_forms import for_batches, in_processes, vectorized
from pipediag.patching.chains import (
    argument,
    called_by_readers,
    inserted,
    moved,
    renamed,
    with_arguments,
)
from pipediag.patching.hoisting import hoisted
from pipediag.patching.model_inputs import with_any_length
from pipediag.patching.names import (
    free_name,
    is_parameter,
    needed_tensorflow,
    references,
    tensorflow,
    written,
)
from pipediag.patching.python_calls import (
    DISTRIBUTED,
    defined,
    in_buckets,
    in_chunks,
    is_of_its_caller,
    lines_of,
    padding_cut,
    rewritten_call,
    through_a_function,
)
from pipediag.patching.settings import compiled, with_options, with_workers
from pipediag.patching.sites import Suits
from pipediag.patching.snippets import every
from pipediag.patching.source import (
    Change,
    NotPatchableError,
    Source,
    Span,
    insertion,
    name_of,
    only,
    replaced,
)
from pipediag.patching.workspace import Workspace
from pipediag.session import edits
from pipediag.session.pipeline import Operation
from pipediag.step_source import NotAFunctionError, step_at
from pipediag.vocabulary import Scalar

_SHUFFLES = frozenset({"shuffle", "shuffle_and_repeat"})
_COUNT = frozenset("enumerate repeat shard skip take window".split())
_MOVED_FOR_ALL = frozenset({"map", "shuffle"})
"""Moved within pipelines of the same operations and functions, each of them gives the same up to
order as before."""
_BATCHES = frozenset({"batch", "padded_batch", "ragged_batch"})
_COUNTED = "`steps_per_epoch` counts batches and would have to change too."
_PARALLEL = frozenset({"num_parallel_calls", "num_parallel_reads"})
"""Parameters that change how fast elements come and not which: they may hold for more pipelines
than the one that was measured."""
_THREADS = frozenset({"autotune.enabled", "threading.private_threadpool_size"})
"""Options of which the same is true."""


def write(workspace: Workspace, changes: Sequence[edits.Change]) -> None:
    """Write all of the changes into the files."""
    workers = [
        each for each in changes if isinstance(each, edits.Replace) and each.kind == "PyDataset"
    ]
    if workers:
        # What else there is imitates what Keras does by itself when it has workers.
        changes = workers
    _refuse_contradictions(changes, [op.kind for op in workspace.session.ops])
    for change in changes:
        if change.do in _BY_HAND:
            raise NotPatchableError(_BY_HAND[change.do])
    for name, write_one in _PASSES.items():
        for change in changes:
            if _pass_of(change) == name:
                write_one(workspace, change)


def _pass_of(change: edits.Change) -> str:
    if isinstance(change, edits.Insert) and change.kind == "prefetch":
        return "prefetch"
    if isinstance(change, edits.Replace) and change.kind in ("in_chunks", edits.IN_PROCESSES):
        return change.kind
    return change.do


def _refuse_contradictions(changes: Sequence[edits.Change], kinds: Sequence[str]) -> None:
    """Raise if two changes give one parameter different values, as a trial of both does.

    Or if two move behind the same call, as each edit would have its own stand first.
    """
    places = [change.after for change in changes if isinstance(change, edits.Move)]
    if len(set(places)) < len(places):
        raise NotPatchableError("Two of the changes move a call to the same place.")
    if edits.caches_batches(changes, kinds):
        raise NotPatchableError(edits.CACHED_BATCHES)
    given: dict[tuple[str, str], Scalar] = {}
    for change in changes:
        place, values = _settings(change)
        for name, value in values.items():
            if given.setdefault((place, name), value) != value:
                raise NotPatchableError(f"Two of the changes set `{name}` to different values.")


def _settings(change: edits.Change) -> tuple[str, dict[str, Scalar]]:
    if isinstance(change, edits.SetParameters):
        return change.op_id, change.parameters
    if isinstance(change, edits.SetOptions):
        return "options", change.options
    return ("model", change.settings) if isinstance(change, edits.SetModel) else ("", {})


def _set(workspace: Workspace, change: edits.SetParameters) -> None:
    suits: Suits = "any" if set(change.parameters) <= _PARALLEL else "one"
    source, call = workspace.only_call(change.op_id, suits=suits)
    if "batch_size" in change.parameters:
        _check_counted_batches(workspace, change.op_id)
        _check_batch_size(source, call)
    workspace.change(source, with_arguments(source, call, _texts(source, change.parameters)))


def _counts_steps(call: cst.Call, *names: str) -> bool:
    keywords = {arg.keyword.value for arg in call.args if arg.keyword is not None}
    return not keywords.isdisjoint(("steps_per_epoch", *names))


def _check_counted_batches(workspace: Workspace, op_id: str) -> None:
    loop = workspace.session.diagnosed_loop()
    if loop is not None and loop.keras is not None and loop.file is not None:
        fits = workspace.source(loop.file).calls_of("fit")
        if any(_counts_steps(fit) or any(arg.star == "**" for arg in fit.args) for fit in fits):
            raise NotPatchableError(_COUNTED)
    ops = every(workspace.session)
    below = {op_id}
    for _ in ops:
        below |= {op.id for op in ops if below & set(op.parent_ids)}
    counting = sorted({op.kind for op in ops if op.id in below and op.kind in _COUNT})
    if counting:
        raise NotPatchableError(f"The `{counting[0]}` after it counts batches.")


def _check_batch_size(source: Source, call: cst.Call) -> None:
    given = argument(call, "batch_size")
    size = given.value if given is not None else None
    if not isinstance(size, cst.Integer | cst.Name):
        raise NotPatchableError("The batch size is neither a number nor a variable.")
    if isinstance(size, cst.Name) and is_parameter(source, size):
        raise NotPatchableError(f"`{size.value}` is a parameter of a function.")
    if isinstance(size, cst.Name) and len(references(source, size.value)) > 1:
        raise NotPatchableError(f"`{size.value}` is used for more than these batches.")
    if any(_counts_steps(each, "validation_steps") for each in source.calls.values()):
        raise NotPatchableError(_COUNTED)


def _texts(source: Source, values: dict[str, Scalar]) -> dict[str, str]:
    if not all(name.isidentifier() for name in values):
        raise NotPatchableError("An argument with that name can't be written.")
    return {name: written(source, name, value) for name, value in values.items()}


def _insert(workspace: Workspace, change: edits.Insert) -> None:
    if change.kind not in ("cache", "prefetch", edits.CUT_PADDING):
        otherwise = f"`{change.kind}` can't be written as one call."
        raise NotPatchableError(_NOT_INSERTED.get(change.kind, otherwise))
    suits: Suits = "any"
    if change.kind == "cache":
        if _is_kept(workspace, change.after):
            return
        suits = _suited_by_a_cache(workspace, change.after)
    source, call = workspace.only_call(change.after, suits=suits)
    if change.kind == "cache":
        for path, line in workspace.hoists:
            made = workspace.source(path)
            workspace.change(made, hoisted(made, line))
        workspace.hoists.clear()
        source, call = workspace.call(change.after)
        workspace.cached.update(workspace.of_the_same_call(change.after))
    readers = [op for op in every(workspace.session) if change.after in op.parent_ids]
    if len(readers) > 1:
        raise NotPatchableError("More than one operation reads its output.")
    if change.kind == edits.CUT_PADDING:
        workspace.change(source, padding_cut(source, call))
        with_any_length(workspace)
        return
    # Of these kinds only a prefetch has a parameter: its buffer's size.
    given = ", ".join(_texts(source, change.parameters).values())
    workspace.change(source, inserted(source, call, f".{change.kind}({given})"))


def _is_kept(workspace: Workspace, op_id: str) -> bool:
    """Return True if a cache before this one, of another pipeline of the same factory, keeps its
    elements, too."""
    ops = every(workspace.session)
    above = [up.id for op in ops if op.id == op_id for up in upstream_of(ops, op)]
    return not workspace.cached.isdisjoint([op_id, *above])


def _distribute(workspace: Workspace, change: edits.Distribute) -> None:
    source, call = workspace.only_call(change.after)
    start = source.span(call).start
    name, definition = defined(
        source, lines_of(DISTRIBUTED), DISTRIBUTED, start, "os", "tensorflow as tf"
    )
    workspace.change(source, [*definition, *inserted(source, call, f".apply({name})")])


def _suited_by_a_cache(workspace: Workspace, op_id: str) -> Suits:
    """Return which pipelines of the same operations may have a cache there.

    What stands in front by now counts: a change may have moved a shuffle behind the place. One that
    stays, while another one follows, mixes files, say: their order is kept.
    """
    ops = {op.id: op for op in every(workspace.session)}
    below = downstream(workspace.session, ops[op_id]) if op_id in ops else []
    mixed_below = any(op.kind in _SHUFFLES for op in below)
    waiting, seen = workspace.of_the_same_call(op_id), set[str]()
    suits: Suits = "cached"
    while waiting:
        op = ops.get(waiting.pop())
        if op is None or op.id in seen:
            continue
        seen.add(op.id)
        if op.id not in workspace.moved:
            shuffles = op.kind in _SHUFFLES
            if differs_by_pass(op) or (shuffles and not mixed_below):
                return "one"
            suits = "shuffled_and_cached" if shuffles else suits
        waiting += op.parent_ids
    return suits


def _move(workspace: Workspace, change: edits.Move) -> None:
    op, target = workspace.operation(change.op_id), workspace.operation(change.after)
    _, after = workspace.call(change.after)
    if (op.inside_function_of, op.file) != (target.inside_function_of, target.file):
        raise NotPatchableError("The two calls are not in the same function.")
    suits: Suits = "moved" if op.kind in _MOVED_FOR_ALL else "one"
    source, call = workspace.only_call(change.op_id, suits=suits, until=change.after)
    batched = target.kind in _BATCHES or change.after in workspace.moved
    in_place = target.id in op.parent_ids and target.id not in workspace.moved
    workspace.moved.add(change.op_id)
    if in_place:
        return
    rewritten: list[Change] = []
    if change.vectorized:
        rewritten = vectorized(source, call)
    elif op.kind == "map" and batched:
        rewritten = for_batches(source, call, op.function, workspace.other_files(source.path))
    inside = source.span(call)
    if any(inside.start <= each.span.start < inside.end for each in rewritten):
        # A lambda moves with its call: rewrite it first, and move what came out.
        workspace.change(source, rewritten)
        source, call = workspace.call(change.op_id)
        _, after = workspace.call(change.after)
        rewritten = []
    workspace.change(source, [*moved(source, call, after), *rewritten])


def _replace(workspace: Workspace, change: edits.Replace) -> None:
    if change.kind == "PyDataset":
        keras = workspace.keras()
        source = workspace.source(keras.source_file)
        given = _texts(source, change.parameters)
        workspace.change(source, with_workers(source, keras.source, given))
        return
    op = workspace.operation(change.op_id)
    if op.kind == "from_generator":
        raise NotPatchableError("Only you know how its data can be divided.")
    source, call = workspace.only_call(change.op_id)
    values = _texts(source, change.parameters)
    if (op.kind, change.kind) == ("flat_map", "interleave"):
        changes = renamed(source, call, change.kind, values)
    elif change.kind == edits.BUCKETS:
        changes = in_buckets(source, call, to_longest=edits.cuts_rows(change))
    elif change.kind == "parallel_flat_map" and op.kind in ("flat_map", "interleave"):
        changes = called_by_readers(source, call, values)
    else:
        raise NotPatchableError(f"The replacement for `{op.kind}` takes more than one call.")
    workspace.change(source, changes)
    if edits.cuts_rows(change):
        with_any_length(workspace)


def _stack(workspace: Workspace, change: edits.Replace) -> None:
    suits: Suits = "one" if is_of_its_caller(*workspace.call(change.op_id)) else "any"
    source, call = workspace.only_call(change.op_id, suits=suits)
    workspace.change(source, in_chunks(source, call))


def _in_processes(workspace: Workspace, change: edits.Replace) -> None:
    source, call = workspace.only_call(change.op_id, suits="any")
    workspace.change(source, in_processes(source, call, str(change.parameters["processes"])))


def _options(workspace: Workspace, change: edits.SetOptions) -> None:
    suits: Suits = "any" if set(change.options) <= _THREADS else "one"
    source, call = workspace.only_call(_last(workspace).id, suits=suits)
    workspace.change(source, with_options(source, call, change.options))


def _last(workspace: Workspace) -> Operation:
    pipeline = workspace.session.pipeline
    own = [
        op
        for op in (pipeline.ops if pipeline else [])
        if not (op.made_by_framework or op.inserted_by_tensorflow or op.inside_function_of)
    ]
    read = {parent for op in own for parent in op.parent_ids}
    return only((op for op in own if op.id not in read), "It is not known where the pipeline ends.")


def _compile(workspace: Workspace, change: edits.SetModel) -> None:
    source, call = workspace.compile_call()
    workspace.change(source, compiled(source, call, workspace.keras(), change.settings))


def _predict(workspace: Workspace, change: edits.PredictOnBatch) -> None:
    source = workspace.source(change.file)
    call = source.only_call_of("predict", change.line)
    data, left_out = argument(call, "x"), ("batch_size", "verbose")
    others = [argument(call, name) for name in left_out]
    known = [arg for arg in (data, *others) if arg is not None]
    if data is None or len(known) < len(call.args) or not isinstance(call.func, cst.Attribute):
        raise NotPatchableError("The call has arguments that `predict_on_batch` does not take.")
    if b"#" in source.data[source.span(data.value).end : source.span(call).end]:
        raise NotPatchableError("There is a comment among the arguments that would be removed.")
    name = source.span(name_of(call))
    if call.args[0] is data and data.keyword is None:
        rest = Span(source.span(data).end, source.span(call.args[-1]).end)
        changes = [replaced(name, "predict_on_batch"), Change(rest)]
    else:
        text = f"predict_on_batch({source.module.code_for_node(data.value)})"
        changes = [replaced(Span(name.start, source.span(call).end), text)]
    workspace.change(source, changes)


def _rewrite(workspace: Workspace, change: edits.RewriteCall) -> None:
    source = workspace.source(change.file)
    workspace.change(source, rewritten_call(source, change.line))


def _compile_call(workspace: Workspace, change: edits.CompileCall) -> None:
    source = workspace.source(change.file)
    workspace.change(source, through_a_function(source, change.line, change.model))


def _extract(workspace: Workspace, change: edits.ExtractStep) -> None:
    """Write the step as a `tf.function` before its outermost loop, and call it in its place."""
    source, tf = workspace.source(change.file), needed_tensorflow(workspace.source(change.file))
    if change.line not in source.starts:
        raise NotPatchableError("Two of the changes affect the same place.")
    line = source.data.count(b"\n", 0, source.starts[change.line]) + 1
    try:
        step = step_at(source.text, line)
    except NotAFunctionError as error:
        raise NotPatchableError(str(error)) from error
    lines, name = source.text.splitlines(), free_name(source, "train_step")
    starts = [0, *(one.end() for one in re.finditer(b"\n", source.data)), len(source.data)]
    apart = [""] * (1 if step.loop_indent else 2)
    above = lines[step.loop_line - 2] if step.loop_line > 1 else ""
    relaxed = "(reduce_retracing=True)" if change.reduce_retracing else ""
    definition = [
        *(apart if above.strip() else ()),
        f"{step.loop_indent}@{tf}.function{relaxed}",
        *step.definition(lines, name),
        *apart,
    ]

    def text(lines: list[str]) -> str:
        return "".join(f"{one}{source.newline}" for one in lines)

    place = Span(starts[step.first - 1], starts[step.last])
    defined_above = insertion(starts[step.loop_line - 1], text(definition))
    called_here = replaced(place, text(step.use(lines, name, change.numbers, tf)))
    workspace.change(source, [defined_above, called_here])


def _compile_function(workspace: Workspace, change: edits.CompileFunction) -> None:
    source = workspace.source(change.file)
    name, tf = change.function.rpartition(".")[2], tensorflow(source)
    found = [
        node
        for node in source.all(cst.FunctionDef)
        if node.name.value == name
        and change.line in (source.line(node.name), *map(source.line, node.decorators))
    ]
    if len(found) != 1 or tf is None:
        raise NotPatchableError(
            f"`{name}` was not found in its file, or TensorFlow is not imported there."
        )
    if change.reduce_retracing:
        workspace.change(source, _relaxed(source, found[0], tf))
        return
    name_at = source.span(found[0].name).start
    line = f"{source.indent(name_at)}@{tf}.function{source.newline}"
    workspace.change(source, [insertion(source.line_start(name_at), line)])


def _relaxed(source: Source, definition: cst.FunctionDef, tf: str) -> list[Change]:
    for each in definition.decorators:
        made = each.decorator
        if isinstance(made, cst.Call) and source.code(made.func) == f"{tf}.function":
            return with_arguments(source, made, {"reduce_retracing": "True"})
        if source.code(made) == f"{tf}.function":
            return [insertion(source.span(made).end, "(reduce_retracing=True)")]
    raise NotPatchableError(f"`{definition.name.value}` has no `@{tf}.function` decorator.")


_NOT_INSERTED = {
    "prefetch_to_device": "The copy to the device must stay at the end of the pipeline.",
    "repeat": "An epoch would never end: `fit` also needs `steps_per_epoch`, and nothing else may "
    "read the dataset to its end.",
}
_BY_HAND = {"remove": "Only you know what else reads what it leaves out."}
_PASSES: dict[str, Callable[[Workspace, Any], None]] = {
    "predict": _predict,
    "compile_call": _compile_call,
    "rewrite": _rewrite,
    "extract": _extract,
    "compile": _compile_function,
    "set": _set,
    "replace": _replace,
    "prefetch": _insert,
    "move": _move,
    "insert": _insert,
    "distribute": _distribute,
    "options": _options,
    "model": _compile,
    edits.IN_PROCESSES: _in_processes,
    "in_chunks": _stack,
}
"""In the order of capture/replay/changes.py, but for the one that takes the place of the name by
which others find their call."""
