"""Each kind of change, written into the source: as a trial makes them, in the same order."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import libcst as cst

from pipediag.facts.pipeline import (
    differs_by_pass,
    downstream,
    every,
    last_operation,
    upstream_of,
)
from pipediag.patching.batch_forms import (
    for_batches,
    hand_batches_on,
    in_batches,
    in_processes,
    vectorized,
)
from pipediag.patching.chains import (
    argument,
    called_by_readers,
    inserted,
    moved,
    renamed,
    with_arguments,
)
from pipediag.patching.device_copies import with_copies_ahead
from pipediag.patching.evaluation_data import evaluation_of, with_evaluation_cached
from pipediag.patching.python_calls import (
    defined,
    in_buckets,
    in_chunks,
    rewritten_call,
    through_a_function,
)
from pipediag.patching.settings import (
    compiled,
    input_name,
    input_shape,
    may_have_length,
    with_options,
    with_workers,
)
from pipediag.patching.sites import Suits, gets_tensors, hoisted, is_in_a_loop
from pipediag.patching.snippets import EACH_SHAPE, cut, lengths_of_ids
from pipediag.patching.source import (
    Change,
    MadeInALoopError,
    NotPatchableError,
    Source,
    Span,
    name_of,
    only,
    walk,
)
from pipediag.patching.workspace import Workspace
from pipediag.session import edits
from pipediag.session.loops import Loop
from pipediag.session.pipeline import Operation
from pipediag.step_source import NotAFunctionError, step_at
from pipediag.tensorflow_names import BATCHING
from pipediag.vocabulary import EVALUATING, Scalar

_TO_DEVICE = "prefetch_to_device"
_SHUFFLES = frozenset({"shuffle", "shuffle_and_repeat"})
_COUNT = frozenset("enumerate repeat shard skip take window".split())
_MOVED_FOR_ALL = frozenset({"map", "shuffle"})
"""Moved within pipelines of the same operations and functions, each of them gives the same up to
order as before."""
_PARALLEL = frozenset({"num_parallel_calls", "num_parallel_reads"})
"""Parameters that change how fast elements come and not which: they may hold for more pipelines
than the one that was measured."""
_THREADS = frozenset({"autotune.enabled", "threading.private_threadpool_size"})
"""Options of which the same is true."""


def write(workspace: Workspace, changes: Sequence[edits.Change]) -> None:
    """Write all of the changes into the files."""
    kept = [one for one in changes if isinstance(one, edits.Replace) and one.kind == "PyDataset"]
    # Keras does by itself what else there is, when it has workers.
    changes = kept or changes
    _refuse_parted(workspace, changes)
    places = [change.after for change in changes if isinstance(change, edits.Move)]
    if len(set(places)) < len(places):
        # Each edit would have its own stand first.
        raise NotPatchableError("Two of the changes move a call to the same place.")
    why = edits.contradiction(changes, [op.kind for op in workspace.session.ops])
    if why is not None:
        raise NotPatchableError(why)
    if any(isinstance(change, edits.Remove) for change in changes):
        raise NotPatchableError("Only you know what else reads what it leaves out.")
    for name, write_one in _PASSES.items():
        for change in changes:
            if _pass_of(change) == name:
                write_one(workspace, change)


def _refuse_parted(workspace: Workspace, changes: Sequence[edits.Change]) -> None:
    """Raise where other code may come between operations that hand batches on."""
    group = list[tuple[Source, cst.Call]]()
    for change in changes:
        if isinstance(change, edits.Replace) and "last" in change.parameters:
            group.append(workspace.call(change.op_id))
            if change.parameters["last"]:
                sources, calls = zip(*group, strict=True)
                together = len({one.path for one in sources}) == 1
                if not together or not hand_batches_on(sources[0], calls):
                    raise NotPatchableError("Other code may come between the operations.")
                group.clear()


def _pass_of(change: edits.Change) -> str:
    alone = ("in_chunks", edits.IN_BATCHES, edits.IN_PROCESSES, _TO_DEVICE)
    if isinstance(change, edits.Replace | edits.Insert) and change.kind in alone:
        return change.kind
    return change.do


def _set(workspace: Workspace, change: edits.SetParameters) -> None:
    suits: Suits = "any" if set(change.parameters) <= _PARALLEL else "one"
    source, call = workspace.only_call(change.op_id, suits=suits)
    if "batch_size" in change.parameters:
        _check_counted_batches(workspace, change.op_id, source)
        _check_batch_size(source, call)
    workspace.change(source, with_arguments(source, call, _texts(source, change.parameters)))


_STEPS = ("steps_per_epoch", "validation_steps")


def _check_counted_batches(workspace: Workspace, op_id: str, source: Source) -> None:
    """Raise where something counts batches, and would have to change with their size."""
    loop, sources = workspace.session.diagnosed_loop(), [source]
    if loop is not None and loop.keras is not None and loop.file is not None:
        sources.append(workspace.source(loop.file))
    fits = [fit for each in sources[1:] for fit in each.calls_of("fit")]
    given = [arg for each in sources for call in each.calls.values() for arg in call.args]
    if any(arg.keyword is not None and arg.keyword.value in _STEPS for arg in given) or any(
        arg.star == "**" for fit in fits for arg in fit.args
    ):
        raise NotPatchableError("`steps_per_epoch` counts batches and would have to change too.")
    for op in every(workspace.session):
        if op.kind in _COUNT and op_id in _up_to(workspace, [op.id]):
            raise NotPatchableError(f"The `{op.kind}` after it counts batches.")


def _check_batch_size(source: Source, call: cst.Call) -> None:
    size = argument(call, "batch_size")
    if not isinstance(size, cst.Integer | cst.Name):
        raise NotPatchableError("The batch size is neither a number nor a variable.")
    if isinstance(size, cst.Name) and (
        source.is_parameter(size) or len(source.references(size.value)) > 1
    ):
        raise NotPatchableError(f"`{size.value}` is not a variable of these batches alone.")


def _texts(source: Source, values: dict[str, Scalar]) -> dict[str, str]:
    if not all(name.isidentifier() for name in values):
        raise NotPatchableError("An argument with that name can't be written.")
    return {name: source.written(name, value) for name, value in values.items()}


def _copy_ahead(workspace: Workspace, change: edits.Insert) -> None:
    session = workspace.session
    loop, last = session.diagnosed_loop(), last_operation(session)
    added = any(op.made_by_framework and op.helper is None for op in session.ops)
    if loop is None or added or last is None or last.id != change.after:
        raise NotPatchableError("More follows that operation, and nothing may follow such a copy.")
    at = [one for one in session.loops if (one.file, one.line) == (loop.file, loop.line)]
    # What `fit` evaluates with is another argument of it.
    if any(one is not loop and (one.kind, one.role) != ("keras", "validation") for one in at):
        raise NotPatchableError("Other data is read in the same line.")
    source = workspace.source(loop.file)
    copy = f"{source.needed_tensorflow()}.data.experimental.{_TO_DEVICE}"
    call = f".apply({copy}({change.parameters.get('device')!r}))"
    files = [workspace.source(one.path) for one in workspace.other_files(source.path)]
    workspace.change(source, with_copies_ahead(source, loop, call, files))


def _insert(workspace: Workspace, change: edits.Insert) -> None:
    if change.kind not in ("cache", edits.CUT_PADDING):
        raise NotPatchableError(f"`{change.kind}` can't be written as one call there.")
    suits: Suits = "any"
    if change.kind == "cache":
        if not workspace.cached.isdisjoint(_up_to(workspace, [change.after])):
            return  # a cache of another pipeline of the same factory keeps its elements, too
        suits = _suited_by_a_cache(workspace, change.after)
        _check_read_to_the_end(workspace, change.after)
    try:
        source, call = workspace.only_call(change.after, suits=suits)
    except NotPatchableError:
        if change.kind != "cache" or not _cached_elsewhere(workspace, change.after, suits):
            raise
        return
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
        name, definition = defined(source, edits.CUT_PADDING, source.span(call).start)
        workspace.change(source, [*definition, *inserted(source, call, cut(change, name))])
        _take_any_length(workspace)
        return
    workspace.change(source, inserted(source, call, ".cache()"))


def _check_read_to_the_end(workspace: Workspace, op_id: str) -> None:
    """Raise where a loop of the script leaves before all is read, as its cache is then discarded;
    note where it may."""
    session = workspace.session
    for loop in session.loops:
        pipeline = session.pipeline if loop.diagnosed else loop.pipeline
        ops = pipeline.ops if pipeline is not None else []
        own = loop.kind != "keras" and loop.epoch_steps is None
        concerned = own and (loop.diagnosed or loop.role in EVALUATING)
        if not concerned or op_id not in {op.id for op in ops} or not _may_leave(workspace, loop):
            continue
        if loop.iterators > 1:
            raise NotPatchableError(f"The loop in line {loop.line} ends before a cache completes.")
        workspace.notes.append(
            f"The loop in line {loop.line} can end before all of its data is read. A cache helps "
            "only if it reads all of it."
        )


def _may_leave(workspace: Workspace, loop: Loop) -> bool:
    with suppress(NotPatchableError):  # its file is only looked at
        source = workspace.source(loop.file)
        at = (node for node in source.all(cst.For) if source.line(node) == loop.line)
        return any(_leaves(source, node, one) for node in at for one in walk(node.body))
    return False


def _leaves(source: Source, loop: cst.For, statement: cst.CSTNode) -> bool:
    if isinstance(statement, cst.Return):
        return source.around(statement, cst.FunctionDef) is source.around(loop, cst.FunctionDef)
    within = (one for one in source.ancestors(statement) if isinstance(one, cst.For | cst.While))
    return isinstance(statement, cst.Break) and next(within) is loop


def _cached_elsewhere(workspace: Workspace, op_id: str, suits: Suits) -> bool:
    """Put a cache where a loop gets the data that it evaluates with, or where the function that
    makes the pipeline calls a shared one that adds the operation; False if neither can be."""
    loop = evaluation_of(workspace.session, op_id)
    workspace.hoists.clear()
    with suppress(NotPatchableError):
        if loop is not None:
            read_in = workspace.source(loop.file)
            others = [workspace.source(one.path) for one in workspace.other_files(read_in.path)]
            source, changes = with_evaluation_cached(read_in, loop.line, others)
            workspace.change(source, changes)
        else:
            source, call = workspace.call_of_helper(op_id, suits)
            workspace.change(source, inserted(source, call, ".cache()"))
        workspace.cached.add(op_id)
        return True
    return False


def _take_any_length(workspace: Workspace) -> None:
    """Let inputs of the loop's model take rows of any length, where they declare one of rows."""
    for name, length in lengths_of_ids(workspace.session).items():
        source, written = _declared_length(workspace, name, length)
        workspace.change(source, [Change.replace(source.span(written), "None")])


def _declared_length(
    workspace: Workspace, name: str, length: int
) -> tuple[Source, cst.BaseExpression]:
    """Return the file and the expression in which the program writes the length of an input."""
    calls = [
        (source, call)
        for source in workspace.program_files()
        for call in source.calls_of("Input", "InputLayer")
        if not any(arg.star for arg in call.args)
    ]
    found = [one for one in calls if input_name(one[1]) == name]
    found = found or [
        one for one in calls if input_name(one[1]) is None and may_have_length(one[1], length)
    ]
    wanted = f"Give the input `{name}` of {length} the shape `(None,)`"
    if len(found) != 1:
        raise NotPatchableError(
            f"{wanted}: of the calls of `Input` that were found, {len(found)} may declare it."
        )
    ((source, call),) = found
    shape = input_shape(call)
    if shape is None or len(shape) != 1:
        raise NotPatchableError(f"{wanted}: line {source.line(call)} does not write out its shape.")
    return source, shape[0]


def _up_to(workspace: Workspace, op_ids: Sequence[str]) -> dict[str, Operation]:
    """Return the operations of these ids, and all whose elements reach them."""
    ops = every(workspace.session)
    return {up.id: up for op in ops if op.id in op_ids for up in (op, *upstream_of(ops, op))}


def _suited_by_a_cache(workspace: Workspace, op_id: str) -> Suits:
    """Return which pipelines of the same operations may have a cache there.

    What stands in front by now counts: a change may have moved a shuffle behind the place. One that
    stays, while another one follows, mixes files, say: their order is kept.
    """
    above = _up_to(workspace, workspace.of_the_same_call(op_id))
    staying = [op for op in above.values() if op.id not in workspace.moved]
    shuffles = [op for op in staying if op.kind in _SHUFFLES]
    behind = [op for op in above.values() if op.id in workspace.moved]
    behind += downstream(workspace.session, above[op_id]) if op_id in above else []
    mixed = any(op.kind in _SHUFFLES for op in behind)
    if any(map(differs_by_pass, staying)) or (shuffles and not mixed):
        return "one"
    return "shuffled_and_cached" if shuffles else "cached"


def _move(workspace: Workspace, change: edits.Move) -> None:
    op, target = workspace.operation(change.op_id), workspace.operation(change.after)
    _, after = workspace.call(change.after)
    if (op.inside_function_of, op.file) != (target.inside_function_of, target.file):
        raise NotPatchableError("The two calls are not in the same function.")
    suits: Suits = "moved" if op.kind in _MOVED_FOR_ALL else "one"
    source, call = workspace.only_call(change.op_id, suits=suits, until=change.after)
    batched = target.kind in BATCHING or change.after in workspace.moved
    in_place = target.id in op.parent_ids and target.id not in workspace.moved
    workspace.moved.add(change.op_id)
    if in_place:
        return
    rewritten: list[Change] = []
    if change.vectorized:
        rewritten = vectorized(source, call)
    elif op.kind == "map" and batched:
        of_files = for_batches(workspace, source, call, op.function)
        rewritten = of_files.pop(source.path, [])
        for path, changes in of_files.items():
            workspace.change(workspace.source(path), changes)
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
        if keras.source_file is None:
            raise NotPatchableError("The class is Keras's own: set its workers before `fit`.")
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
    elif edits.cuts_rows(change):
        raise NotPatchableError("Its `padded_shapes` have to leave out the length of a row.")
    elif change.kind == edits.BUCKETS:
        changes = in_buckets(source, call)
    elif change.kind == "parallel_flat_map" and op.kind in ("flat_map", "interleave"):
        changes = called_by_readers(source, call, values)
    else:
        raise NotPatchableError(f"The replacement for `{op.kind}` takes more than one call.")
    workspace.change(source, changes)


def _stack(workspace: Workspace, change: edits.Replace) -> None:
    source, call = workspace.call(change.op_id)
    signature, given = argument(call, "output_signature"), argument(call, "args")
    of_the_caller = isinstance(signature, cst.Name) and source.is_parameter(signature)
    workspace.only_call(change.op_id, suits="one" if of_the_caller else "any")
    files = [source, *workspace.other_files(source.path)]
    names = source.all(cst.Name, given) if given is not None else []
    if any(map(source.is_parameter, names)) and gets_tensors(files, source, call):
        raise NotPatchableError("Its `args` may be tensors of another operation's function.")
    workspace.change(source, in_chunks(source, call))


def _take_batches(workspace: Workspace, change: edits.Replace) -> None:
    source, call = workspace.only_call(change.op_id, suits="any")
    op = workspace.operation(change.op_id)
    if op.function is None:
        raise NotPatchableError("Its function was not recorded.")
    given = change.op_id, op.function, change.parameters
    has_length = op.cardinality is not None and op.cardinality >= 0
    for path, changes in in_batches(workspace, source, call, *given, has_length=has_length).items():
        workspace.change(workspace.source(path), changes)


def _in_processes(workspace: Workspace, change: edits.Replace) -> None:
    source, call = workspace.only_call(change.op_id, suits="any")
    if is_in_a_loop([source, *workspace.other_files(source.path)], source, call):
        raise MadeInALoopError("The call is in a loop, which would start processes each time.")
    workspace.change(source, in_processes(source, call, str(change.parameters["processes"])))


def _options(workspace: Workspace, change: edits.SetOptions) -> None:
    suits: Suits = "any" if set(change.options) <= _THREADS else "one"
    source, call = workspace.only_call(_last(workspace).id, suits=suits)
    workspace.change(source, with_options(source, call, change.options))


def _last(workspace: Workspace) -> Operation:
    made = [op for op in workspace.session.ops if not op.inside_function_of]
    own = [op for op in made if not (op.made_by_framework or op.inserted_by_tensorflow)]
    read = {parent for op in own for parent in op.parent_ids}
    return only((op for op in own if op.id not in read), "It is not known where the pipeline ends.")


def _compile(workspace: Workspace, change: edits.SetModel) -> None:
    source, call = workspace.compile_call()
    workspace.change(source, compiled(source, call, workspace.keras(), change.settings))
    if "optimizer" in change.settings:
        workspace.notes.append(
            "The script then imports `pipediag.optimizers`, and so must what loads a model that it "
            "saves with its optimizer."
        )


def _in_file(write_one: Callable[[Source, Any], list[Change]]) -> Callable[[Workspace, Any], None]:
    """Return a writer of changes that name their file."""

    def write_it(workspace: Workspace, change: Any) -> None:
        source = workspace.source(change.file)
        workspace.change(source, write_one(source, change))

    return write_it


def _predict(workspace: Workspace, change: edits.PredictOnBatch) -> None:
    source = workspace.source(change.file)
    call = source.only_call_of("predict", change.line)
    data, left_out = argument(call, "x"), ("batch_size", "verbose")
    others = [argument(call, name) for name in left_out]
    known = [arg for arg in (data, *others) if arg is not None]
    if data is None or len(known) < len(call.args) or not isinstance(call.func, cst.Attribute):
        raise NotPatchableError("The call has arguments that `predict_on_batch` does not take.")
    name, kept, end = source.span(name_of(call)), source.span(data), source.span(call).end
    if b"#" in source.data[name.end : kept.start] + source.data[kept.end : end]:
        raise NotPatchableError("There is a comment among the arguments that would be removed.")
    text = f"predict_on_batch({source.module.code_for_node(data)})"
    workspace.notes.append(
        f"The prediction in line {change.line} then takes all of its rows in one batch, which may "
        "not fit in memory where these are many."
    )
    workspace.change(source, [Change.replace(Span(name.start, end), text)])


def _extract(source: Source, change: edits.ExtractStep) -> list[Change]:
    """Write the step as a `tf.function` before its outermost loop, and call it in its place."""
    if change.line not in source.starts:
        raise NotPatchableError("Two of the changes affect the same place.")
    try:
        step = step_at(source.text, source.data.count(b"\n", 0, source.starts[change.line]) + 1)
    except NotAFunctionError as error:
        raise NotPatchableError(str(error)) from error
    name, written = source.free_name("train_step"), source.text.splitlines()
    starts = [0, *(one.end() for one in re.finditer(b"\n", source.data)), len(source.data)]
    tf, apart = source.needed_tensorflow(), [""] * (1 if step.loop_indent else 2)
    above = written[step.loop_line - 2] if step.loop_line > 1 else ""
    relaxed = "(reduce_retracing=True)" if change.reduce_retracing else EACH_SHAPE
    decorator = f"{step.loop_indent}@{tf}.function{relaxed}"
    definition = [decorator, *step.definition(name), *apart]
    use = step.use(name, change.numbers, tf)

    def text(lines: list[str]) -> str:
        return "".join(f"{one}{source.newline}" for one in lines)

    if above.strip():
        definition = [*apart, *definition]
    return [
        Change.insert(starts[step.loop_line - 1], text(definition)),
        Change.replace(Span(starts[step.first - 1], starts[step.last]), text(use)),
    ]


def _compile_function(source: Source, change: edits.CompileFunction) -> list[Change]:
    name, tf = change.function.rpartition(".")[2], source.tensorflow()
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
        return _relaxed(source, found[0], tf)
    name_at = source.span(found[0].name).start
    line = f"{source.indent(name_at)}@{tf}.function{source.newline}"
    return [Change.insert(source.line_start(name_at), line)]


def _relaxed(source: Source, definition: cst.FunctionDef, tf: str) -> list[Change]:
    for each in definition.decorators:
        made = each.decorator
        if isinstance(made, cst.Call) and source.code(made.func) == f"{tf}.function":
            return with_arguments(source, made, {"reduce_retracing": "True"})
        if source.code(made) == f"{tf}.function":
            return [Change.insert(source.span(made).end, "(reduce_retracing=True)")]
    raise NotPatchableError(f"`{definition.name.value}` has no `@{tf}.function` decorator.")


_PASSES: dict[str, Callable[[Workspace, Any], None]] = {
    "predict": _predict,
    "compile_call": _in_file(through_a_function),
    "rewrite": _in_file(lambda source, one: rewritten_call(source, one.line)),
    "extract": _in_file(_extract),
    "compile": _in_file(_compile_function),
    "set": _set,
    "replace": _replace,
    "move": _move,
    "insert": _insert,
    _TO_DEVICE: _copy_ahead,
    edits.IN_BATCHES: _take_batches,
    "options": _options,
    "model": _compile,
    edits.IN_PROCESSES: _in_processes,
    "in_chunks": _stack,
}
"""In the order of capture/replay/changes.py, but for the one that takes the place of the name by
which others find their call."""
