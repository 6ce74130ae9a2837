"""A cache for the data of an evaluation, where the script hands that to the loop that evaluates."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from pipediag.facts.pipeline import upstream_of
from pipediag.patching.chains import argument
from pipediag.patching.factories import function_parameters
from pipediag.patching.sites import DEPTH, call_of, iterated_data, runs_once, uses
from pipediag.patching.source import Change, NotPatchableError, Source, called, only, walk
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.tensorflow_names import BATCHING
from pipediag.vocabulary import EVALUATING

_HANDED_ON = frozenset({*BATCHING, "prefetch", "take", "with_options"})
"""Operations behind which a cache holds the same elements."""
_GIVEN_TO = {"fit": "validation_data", "evaluate": "x", "predict": "x"}
"""Methods of a Keras model that evaluate, with the parameter that gets the data."""
_PARTIAL = ("steps", "validation_steps")
"""Arguments by which they read a part of it: a cache that is not read to its end keeps nothing."""
_ENDS_A_LOOP = cst.Break | cst.Return | cst.Raise
NO_DATASETS = frozenset(
    "as_numpy_iterator experimental_distribute_dataset islice iter list zip".split()
)
"""Functions that return no dataset, or go through several."""
_SWITCHES = ("True", "False", "None")
"""Ends of arguments by which a function may make data in another way."""
_Data = cst.Name | cst.Attribute | cst.Subscript


def evaluation_of(session: Session, op_id: str) -> Loop | None:
    """Return the loop that evaluates on what an operation makes, where only such operations follow
    as hand on the same elements."""
    pipelines = [(one, one.pipeline.ops) for one in session.loops if one.pipeline is not None]
    reading = [(one, ops) for one, ops in pipelines if op_id in {op.id for op in ops}]
    if not reading or any(loop.role not in EVALUATING for loop, _ in reading):
        return None
    loop, ops = reading[0]
    behind = (op for op in ops if op_id in {up.id for up in upstream_of(ops, op)})
    # Its line may go through something that is no dataset, and has no cache.
    keeps = not loop.handed_on and loop.kind != "distributed"
    return loop if keeps and all(op.kind in _HANDED_ON for op in behind) else None


def with_evaluation_cached(
    source: Source, line: int | None, others: Sequence[Source]
) -> tuple[Source, list[Change]]:
    """Return the file, and its changes, that put a cache behind what the loop of a line reads.

    It goes where the script hands the data on, outside of every loop and of functions that run
    several times; data that a loop hands on, such as that of each epoch's evaluation, gets its
    cache before that loop.

    Raises:
        NotPatchableError: the data is made anew each time, or it is unclear where it comes from.
    """
    found = list(_data_read(source, line))
    data = only(found, f"Line {line} reads the data of {len(found)} evaluations.")
    return _cached([source, *others], source, data)


def _data_read(source: Source, line: int | None) -> Iterator[cst.BaseExpression]:
    for node in source.nodes:
        if isinstance(node, cst.For | cst.Call) and source.line(node) == line:
            if isinstance(node, cst.For):
                ends = any(isinstance(one, _ENDS_A_LOOP) for one in walk(node.body))
                calls = {called(one) for one in source.all(cst.Call, node.iter)}
                if ends or not calls.isdisjoint(NO_DATASETS):
                    raise NotPatchableError("The loop may read less than all of one dataset.")
                yield iterated_data(node.iter)
            elif (name := _GIVEN_TO.get(called(node) or "")) is not None:
                order = (name,) if name == "x" else ()
                data = argument(node, name, order)
                if data is None or any(argument(node, one, ()) is not None for one in _PARTIAL):
                    raise NotPatchableError("The call names no data, or reads a part of it.")
                yield data


def _cached(
    files: Sequence[Source],
    source: Source,
    data: cst.BaseExpression,
    depth: int = 0,
) -> tuple[Source, list[Change]]:
    own, loop = _loops_around(source, data)
    once = runs_once(files, source, loop or own)
    if (once or loop is not None) and _may_be_none(source, data):
        raise NotPatchableError("The program may leave out the data of its evaluations.")
    if loop is not None:
        if not isinstance(data, _Data) or not once:
            raise NotPatchableError("A loop makes the data of its evaluations anew.")
        if not source.bound(loop).isdisjoint(source.names_in(data)):
            raise NotPatchableError("A loop changes the data of its evaluations.")
        name, start = source.free_name("evaluation_data"), source.span(loop).start
        text = f"{name} = {source.code(data)}.cache()"
        above = f"{source.indent(start)}{text}{source.newline}"
        before = Change.insert(source.line_start(start), above)
        return source, [before, Change.replace(source.span(data), name)]
    if once:
        if not isinstance(data, _Data | cst.Call):
            raise NotPatchableError("What the evaluation reads is no variable and no call.")
        return source, [Change.insert(source.span(data).end, ".cache()")]
    if depth >= DEPTH:
        raise NotPatchableError("Too many functions hand on the data of the evaluation.")
    return _cached(files, *origin(files, source, data), depth + 1)


def _may_be_none(source: Source, data: cst.BaseExpression) -> bool:
    """Return True if the program asks whether there is such data, has `None` for it, or makes it
    under a condition alone."""
    function, code = source.around(data, cst.FunctionDef), source.code(data)
    is_name = isinstance(data, cst.Name)
    scope = function if is_name else source.around(data, cst.ClassDef) or function
    own = [
        one
        for one in walk(scope or source.module)
        if not is_name or source.around(one, cst.FunctionDef) is function
    ]
    kinds = cst.If | cst.IfExp | cst.While | cst.Assert
    tests = [one.test for one in own if isinstance(one, kinds)]
    tests += [one for one in own if isinstance(one, cst.BooleanOperation)]
    read = [one for test in tests for one in walk(test) if source.code(one) == code]
    if is_name:
        read = [one for one in read if one in source.references(code)]
    assignments = [one for one in own if isinstance(one, cst.Assign | cst.AnnAssign)]
    given = [one for one in assignments if _gives(source, one, code)]
    nothing = [one for one in given if one.value and source.references("None", one.value)]
    always = [one for one in given if not _is_conditional(source, one)]
    parameters = source.all(cst.Param, function.params) if function is not None else []
    default = [one for one in parameters if one.name.value == code and one.default is not None]
    return bool(read or nothing or default or (is_name and given and not always))


def _is_conditional(source: Source, node: cst.CSTNode) -> bool:
    for above in source.ancestors(node):
        if isinstance(above, cst.FunctionDef):
            break
        main = isinstance(above, cst.If) and "__name__" in source.names_in(above.test)
        if isinstance(above, cst.If | cst.Try) and not main:
            return True
    return False


def _gives(source: Source, assignment: cst.Assign | cst.AnnAssign, code: str) -> bool:
    if isinstance(assignment, cst.AnnAssign):
        return source.code(assignment.target) == code
    targets = (each for one in assignment.targets for each in walk(one.target))
    return any(source.code(each) == code for each in targets)


def _loops_around(
    source: Source, data: cst.BaseExpression
) -> tuple[cst.CSTNode, cst.For | cst.While | None]:
    """Return the loop that goes over the data, else the data, and the outermost loop around it in
    the same function."""
    own: cst.CSTNode = data
    node, loop = own, None
    for above in source.ancestors(data):
        if isinstance(above, cst.FunctionDef):
            break
        if isinstance(above, cst.For) and above.iter is node:
            own = above
        elif isinstance(above, cst.BaseComp | cst.Lambda):
            raise NotPatchableError("The evaluation is in a comprehension, or in a lambda.")
        elif isinstance(above, cst.For | cst.While):
            loop = above
        node = above
    return own, loop


def origin(
    files: Sequence[Source], source: Source, data: cst.BaseExpression
) -> tuple[Source, cst.BaseExpression]:
    """Return what the caller gives for a parameter, or what a class gives an attribute of `self`,
    with its file."""
    function = source.around(data, cst.FunctionDef)
    if isinstance(data, cst.Attribute) and function is not None:
        owner, code = source.around(function, cst.ClassDef), source.code(data)
        targets = source.all(cst.Assign, owner) if owner is not None else []
        values = [one.value for one in targets if _gives(source, one, code)]
        return source, only(values, f"`{code}` is given a value in {len(values)} places.")
    parameters = function_parameters(function) if function is not None else []
    name = data.value if isinstance(data, cst.Name) else ""
    if function is None or name not in parameters or _is_set(source, function, name):
        raise NotPatchableError("A function that runs several times makes the data.")
    used = uses(files, source, function)
    calls = [(where, call) for where, use in used if (call := call_of(where, use)) is not None]
    if len(calls) > 1 and function.name.value != "__init__":
        calls = [one for one in calls if not runs_once(files, *one)]  # those that repeat
    where, call = only(calls, f"`{function.name.value}` is called for several evaluations.")
    given = argument(call, name, parameters)
    if given is None:
        raise NotPatchableError(f"`{function.name.value}` is not given its data.")
    return where, given


def _is_set(source: Source, function: cst.FunctionDef, name: str) -> bool:
    """Return True if a function gives its parameter a value, and not just keeps it by its name."""
    keeps = f"self.{name} = {name}"
    statements = (one for one in function.body.body if source.code(one) != keeps)
    return any(name in source.bound(one) for one in statements)
