"""Calls in the source that made the operations of a pipeline, and how often each is made."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise, takewhile
from typing import Literal

import libcst as cst

from pipediag.patching.chains import Statement, assigned, statement_of, whole_lines
from pipediag.patching.factories import (
    ANY_ORDER,
    CALL_THEIR_FUNCTION,
    SAME_ELEMENTS,
    Call,
    Factory,
    reaching,
)
from pipediag.patching.source import (
    Change,
    MadeInALoopError,
    NotPatchableError,
    Source,
    called,
    chain_root,
    name_of,
    only,
    walk,
)
from pipediag.session.pipeline import Operation


def anchored(source: Source, ops: Sequence[Operation]) -> tuple[Source, dict[str, str]]:
    """The source with the calls of these operations found; for each that was not, why."""
    anchors: dict[str, int] = {}
    reasons: dict[str, str] = {}
    for op in ops:
        twins = [each for each in ops if (each.line, each.kind) == (op.line, op.kind)]
        try:
            anchors[op.id] = _offset(source, op, twins)
        except NotPatchableError as error:
            reasons[op.id] = str(error)
    return replace(source, anchors=anchors), reasons


def _offset(source: Source, op: Operation, twins: Sequence[Operation]) -> int:
    candidates = _candidates(source, op)
    if not candidates:
        raise NotPatchableError(
            f"Line {op.line} does not call `{op.kind}`: the pipeline is built elsewhere."
        )
    ids = {each.id for each in twins}
    # No one call has made both of two that read from each other.
    if len(candidates) == 1 and not any(ids & set(each.parent_ids) for each in twins):
        return candidates[0]
    if len(twins) != len(candidates) or not _one_chain(source, candidates):
        raise NotPatchableError(
            f"Line {op.line} calls `{op.kind}` more than once: it is unclear which this is."
        )
    return candidates[[each.id for each in twins].index(op.id)]


def _candidates(source: Source, op: Operation) -> list[int]:
    """Offsets of calls of that name on the line: of the name, else of the call, else below it.

    Python gives the line of a method's name; of the whole call where that has arguments by stars;
    and of the statement for what AutoGraph has converted.
    """
    named = [(n, call) for n, call in source.calls.items() if called(call) == op.kind]
    by_name = [n for n, call in named if source.line(name_of(call)) == op.line]
    by_call = [n for n, call in named if source.line(call) == op.line]
    statements = [(n, source.around(call, cst.SimpleStatementLine)) for n, call in named]
    by_statement = [n for n, each in statements if each and source.line(each) == op.line]
    return sorted(by_name or by_call or by_statement)


def _one_chain(source: Source, offsets: Sequence[int]) -> bool:
    calls = [source.calls[offset] for offset in offsets]
    return all(
        isinstance(below.func, cst.Attribute)
        and (below.func.value is above or below.func.value in source.ancestors(above))
        for above, below in pairwise(calls)
    )


DEPTH = 8
"""Most functions that call one another; no pipeline is made deeper."""


Suits = Literal["one", "cached", "shuffled_and_cached", "moved", "any"]
"""Pipelines of a factory that a change is right for: the measured one; those built alike up to a
cache, with or without shuffles that stay before it, or around an operation that moves; or any."""
_OPTIONAL = {
    "cached": SAME_ELEMENTS,
    "shuffled_and_cached": SAME_ELEMENTS | {"shuffle"},
    "moved": ANY_ORDER,
}

Callers = dict[str, list[tuple[str, int]]]
"""Functions that make several pipelines, with the files and lines that call them."""


@dataclass(frozen=True)
class Repeats:
    """Nodes in which calls may be made several times, each time for another pipeline or model."""

    files: Sequence[Source]
    """Files of the program, whose calls count."""
    suits: Suits = "one"
    """Pipelines for which the change is right."""
    lasts: bool = False
    """True if the measured pipeline is known to last for all epochs, so that a loop makes others:
    a cache in these is filled once, for nothing."""
    hoists: list[tuple[str, int]] = field(default_factory=list)
    """Files and lines that create it in a loop, and may do so before the loop."""
    fit: tuple[str, int] | None = None
    """File and line of a `fit` that reads it in several epochs."""
    within: bool = False
    """True if the function that makes it, or one that calls it, holds that `fit`."""
    anew: list[tuple[str, int]] = field(default_factory=list)
    """Files and lines of loops that make it anew for each call of that `fit`."""

    def refuse(
        self,
        source: Source,
        call: cst.CSTNode,
        until: int | None = None,
        depth: int = 0,
        made: bool = True,
    ) -> Callers:
        """Return functions that make several such pipelines, and who calls them.

        Raises where the change is not right for all of them. A function that is handed to an
        operation, as to `flat_map`, counts as called in that place. `until` is the offset of the
        last place that the change touches, where that is not the call's end. `made` says that the
        call returns the pipeline, and does nothing else.
        """
        node = call
        for above in source.ancestors(call):
            if isinstance(above, cst.FunctionDef):
                end = source.span(call).end if until is None else until
                made = made and only_makes(source, above, call)
                repeats = replace(self, within=self._holds_the_fit(source, above))
                return repeats._refuse_function(source, above, call, end, depth, made)
            if self.suits != "any" and not _is_once(source, above, node):
                self._refuse_around(source, above, call, made)
            node = above
        return {}

    def _refuse_around(
        self, source: Source, above: cst.CSTNode, call: cst.CSTNode, made: bool
    ) -> None:
        if isinstance(above, cst.BaseComp):
            raise NotPatchableError("The call is in a comprehension.")
        if isinstance(above, cst.Lambda) and not _is_handed_to_an_operation(source, above):
            raise NotPatchableError("The lambda that makes it may be called any number of times.")
        if isinstance(above, cst.For | cst.While | cst.CompFor):
            may_hoist = made and self.suits in _OPTIONAL
            line = line_to_hoist(source, call) if may_hoist else None
            if line is not None:
                self.hoists.append((source.path, line))
            elif self.suits in _OPTIONAL and self._holds_the_fit(source, above):
                self.anew.append((source.path, source.line(above)))
            elif not (self.lasts and self.suits in _OPTIONAL):
                raise MadeInALoopError("The call is in a loop, which makes a new one each time.")

    def _holds_the_fit(self, source: Source, node: cst.CSTNode) -> bool:
        if self.within or self.fit is None or source.path != self.fit[0]:
            return self.within
        first, last = source.lines(node)
        return first <= self.fit[1] <= last

    def _refuse_function(
        self,
        source: Source,
        function: cst.FunctionDef,
        call: cst.CSTNode,
        until: int,
        depth: int,
        made: bool,
    ) -> Callers:
        name, used = function.name.value, self._reaching(source, function, call)
        makers: Callers = {}
        if len(used) > 1:
            makers[name] = sorted({(where.path, where.line(each)) for where, each in used})
            if self.suits == "any":
                return makers
            optional = _OPTIONAL.get(self.suits)
            if (
                optional is None
                or depth >= DEPTH
                or not all(call_of(where, each) for where, each in used)
                or not Factory(
                    source, function, until, used, self._is_of_one_object(source, function)
                ).is_alike(optional)
            ):
                raise NotPatchableError(
                    f"`{name}` is used in {len(used)} places, and only one of them was measured."
                )
        elif depth >= DEPTH:
            return {}
        for where, place in used:
            its_call = call_of(where, place)
            if not _is_called(where, place) and not _is_handed_to_an_operation(where, place):
                if self.suits == "any":
                    return {}
                raise NotPatchableError(f"`{name}` may be called any number of times.")
            end = where.span(its_call or place).end
            makers |= self.refuse(where, place, end, depth + 1, made)
        return makers

    def _is_of_one_object(self, source: Source, function: cst.FunctionDef) -> bool:
        """Return True if it is a method, and the program makes one object of its class."""
        owner = source.class_of(function)
        if owner is None:
            return False
        name = owner.name.value
        read = [(where, one) for where in self.files for one in _reads_of(where, source, name)]
        read = [(where, one) for where, one in read if not where.around(one, cst.Annotation)]
        return len(read) == 1 and call_of(*read[0]) is not None and runs_once(self.files, *read[0])

    def _reaching(self, source: Source, function: cst.FunctionDef, call: cst.CSTNode) -> list[Call]:
        """Return the uses of a function by which the call in it may be made."""
        name = function.name.value
        if name == "__call__" and self.suits == "any":
            return []
        used = uses(self.files, source, function)
        if name == "__init__":
            used = [(where, one) for where, one in used if call_of(where, one)]
        elif not used and not function.decorators and self.suits != "any":
            raise NotPatchableError(f"The code that calls `{name}` was not found.")
        return reaching(source, function, call, used)


def runs_once(files: Sequence[Source], where: Source, node: cst.CSTNode, depth: int = 0) -> bool:
    """Return True if code is in no loop, and in no function that is called more than once, or by
    something else than the program."""
    for above in where.ancestors(node):
        if isinstance(above, cst.For | cst.While | cst.BaseComp | cst.Lambda):
            return False
        if isinstance(above, cst.FunctionDef):
            read = uses(files, where, above)
            if len(read) != 1 or depth >= DEPTH or not _is_called(*read[0]):
                return False
            return runs_once(files, *read[0], depth + 1)
    return True


def _above(
    files: Sequence[Source], where: Source, node: cst.CSTNode, depth: int = 0
) -> Iterator[tuple[Source, cst.CSTNode, cst.CSTNode]]:
    """Yield the nodes around code and around the uses of its function, and so on, each with its
    file and the node in it that leads to the code."""
    within = node
    for above in where.ancestors(node):
        yield where, above, within
        if isinstance(above, cst.FunctionDef):
            for one, use in uses(files, where, above) if depth < DEPTH else ():
                yield from _above(files, one, use, depth + 1)
            return
        within = above


def is_in_a_loop(files: Sequence[Source], where: Source, node: cst.CSTNode) -> bool:
    """Return True if code is in a loop, or in a function that a loop calls."""
    loops = cst.For | cst.While | cst.CompFor | cst.BaseComp
    return any(
        isinstance(above, loops) and not _is_once(one, above, within)
        for one, above, within in _above(files, where, node)
    )


_RUN_A_PROGRAM = ("app.run", "fire.Fire", "typer.run")


def _is_called(source: Source, name: cst.CSTNode) -> bool:
    """Return True where a name is called, or handed to what runs a program, as `app.run(main)`."""
    argument = source.parent(name)
    call = source.parent(argument) if isinstance(argument, cst.Arg) else None
    runs = isinstance(call, cst.Call) and source.code(call.func).endswith(_RUN_A_PROGRAM)
    return runs or call_of(source, name) is not None


def _is_once(source: Source, above: cst.CSTNode, node: cst.CSTNode) -> bool:
    """Return True if the call is made once, as the iterable of a loop or a comprehension is."""
    match above:
        case cst.For():
            return node is above.iter
        case cst.CompFor():
            return node is above.iter and isinstance(source.parent(above), cst.BaseComp)
        case cst.BaseComp():
            return node is above.for_in
    return False


def uses(files: Sequence[Source], source: Source, function: cst.FunctionDef) -> list[Call]:
    """Return where files that run read a function or a method of the file `source`."""
    found = [(where, one) for where in files for one in uses_in(where, source, function)]
    return [(where, one) for where, one in found if not _is_left_out(where, one)]


def _is_left_out(where: Source, node: cst.CSTNode) -> bool:
    """Return True for code that runs only where its file is the script: another one is."""
    within: cst.CSTNode = node
    for above in where.ancestors(node) if where.is_imported else ():
        if isinstance(above, cst.If) and within is above.body:
            words = where.code(above.test).replace("'", '"').split()
            if words in (["__name__", "==", '"__main__"'], ['"__main__"', "==", "__name__"]):
                return True
        within = above
    return False


def uses_in(where: Source, source: Source, function: cst.FunctionDef) -> list[cst.CSTNode]:
    """Return where a file reads a function or a method of the file `source`; of `__init__` where it
    reads the class."""
    name, owner = function.name.value, source.class_of(function)
    if name == "__call__":
        raise NotPatchableError("It is not known which code calls objects of its class.")
    if name == "__init__" and owner is not None:
        name, owner = owner.name.value, None
    if owner is None or not where.has(name):
        return _reads_of(where, source, name)
    named = [each for each in where.all(cst.Attribute) if each.attr.value == name]
    return [each for each in named if not _is_data_of_its_class(where, each)]


def _reads_of(where: Source, source: Source, name: str) -> list[cst.CSTNode]:
    """Return where a file reads a function or a class that the file `source` defines."""
    if not where.has(name):
        return []
    return [*where.references(name)] if where.path == source.path else where.imported_as(name)


def _is_data_of_its_class(source: Source, attribute: cst.Attribute) -> bool:
    """Return True for `self.name` in a class that sets or declares it and has no such method."""
    name, owner = attribute.attr.value, source.around(attribute, cst.ClassDef)
    if owner is None or source.code(attribute.value) != "self":
        return False
    methods = {one.name.value for one in source.all(cst.FunctionDef, owner)}
    given = {source.code(one.target) for one in source.all(cst.AssignTarget, owner)} - {name}
    given |= {source.code(one.target) for one in source.all(cst.AnnAssign, owner)}
    return name not in methods and not given.isdisjoint({name, f"self.{name}"})


def call_of(source: Source, name: cst.CSTNode) -> cst.Call | None:
    """Return the call of what the name stands for; None where it is only named."""
    parent = source.parent(name)
    return parent if isinstance(parent, cst.Call) and parent.func is name else None


def _is_handed_to_an_operation(source: Source, function: cst.CSTNode) -> bool:
    argument = source.parent(function)
    call = source.parent(argument) if isinstance(argument, cst.Arg) else None
    is_method = isinstance(call, cst.Call) and isinstance(call.func, cst.Attribute)
    return is_method and called(call) in CALL_THEIR_FUNCTION


def gets_tensors(files: Sequence[Source], where: Source, node: cst.CSTNode, depth: int = 0) -> bool:
    """Return True if code is in a function that an operation calls, as `interleave(make)` does: it
    gets symbolic tensors, which have no values yet."""
    for above in where.ancestors(node):
        if isinstance(above, cst.Lambda) and _is_handed_to_an_operation(where, above):
            return True
        if isinstance(above, cst.FunctionDef):
            used = uses(files, where, above)
            return any(_is_handed_to_an_operation(*one) for one in used) or (
                depth < DEPTH and any(gets_tensors(files, *one, depth + 1) for one in used)
            )
    return False


_PASS_ON = frozenset({"enumerate", "tqdm", "trange", "zip"})
"""Functions that go through a dataset that they are given, once for each call."""
_STATEFUL = frozenset({"iter", "next", "as_numpy_iterator", "make_initializable_iterator"})
_SHOW = frozenset("debug error format info print warning write".split())
"""Functions that show what they are given, and change nothing in it."""
_Loop = cst.For | cst.While


def line_to_hoist(source: Source, made: cst.CSTNode) -> int | None:
    """Return the line of the statement that creates a dataset in a loop and may do so before it.

    `made` is the call that creates it, or the name that this call calls. None where what the call
    is given changes in the loop, or where only some passes create it.
    """
    try:
        statement = statement_of(source, made)
    except NotPatchableError:
        return None
    loop, given = _outermost(source, statement), assigned(statement)
    expression = given[1] if given else None
    if isinstance(statement, cst.For):
        expression = iterated_data(statement.iter)
    if loop is None or expression is None or made not in walk(expression):
        return None
    changed = source.bound(loop)
    within = takewhile(lambda one: one is not loop, source.ancestors(statement))
    differs = (
        # Only some passes of the loop create it.
        any(isinstance(one, cst.If | cst.Try | cst.With | cst.Match) for one in within)
        or any(source.references(name, expression) for name in changed)
        or _is_worked_on(source, loop, expression)
        # The loop goes on with one iterator.
        or any(called(one) in _STATEFUL for one in source.all(cst.Call, expression))
        or any(_draws(source, one) for one in source.all(cst.Call, expression))
        or (source.around(loop, cst.FunctionDef) is None and _functions_read(source, changed))
        or (given is not None and _sets(source, loop, given[0]) > 1)
    )
    return None if differs else source.line(statement)


def hoisted(source: Source, line: int) -> list[Change]:
    """Return the changes by which the statement of that line creates its dataset before the loop.

    A `for` statement goes over a new name; an assignment moves.
    """
    for node in source.nodes:
        if isinstance(node, cst.For) and source.line(node) == line:
            made, name = iterated_data(node.iter), source.free_name("training_data")
            above = _before_its_loop(source, node, f"{name} = {source.code(made)}")
            return [above, Change.replace(source.span(made), name)]
        if isinstance(node, cst.SimpleStatementLine) and source.line(node) == line:
            above = _before_its_loop(source, node, source.code(node))
            return [above, Change(whole_lines(source, node))]
    raise NotPatchableError("Two of the changes affect the same place.")


def _before_its_loop(source: Source, statement: Statement, text: str) -> Change:
    loop = _outermost(source, statement)
    assert loop is not None
    start = source.span(loop).start
    return Change.insert(source.line_start(start), f"{source.indent(start)}{text}{source.newline}")


def _is_worked_on(source: Source, loop: _Loop, expression: cst.BaseExpression) -> bool:
    """Return True if the loop calls something for its effect, with what the dataset is created of:
    `random.shuffle(files)`, `buffer.extend(...)`."""
    makers = {name_of(one).value for one in source.all(cst.Call, expression) if called(one)}
    read = source.names_in(expression) - makers - source.modules().keys()
    calls = (one for one in source.all(cst.Call, loop) if one not in walk(expression))
    worked_on = (one for one in calls if isinstance(source.parent(one), cst.Expr))
    return any(
        not read.isdisjoint(source.names_in(part))
        for call in worked_on
        for part in (call.func, *(() if called(call) in _SHOW else call.args))
    )


def called_beside(
    source: Source, call: cst.CSTNode, reader: Source, next_call: cst.CSTNode
) -> cst.Call:
    """Return the call of the function that does nothing but add an operation, where the function
    that adds the next one calls it.

    Raises where the function does more, or is not called there exactly once.
    """
    function = source.around(call, cst.FunctionDef)
    returned = source.all(cst.Return, function)
    alone = all(one.value is call or isinstance(one.value, cst.Name) for one in returned)
    if function is None or not alone or not only_makes(source, function, call):
        raise NotPatchableError("The function that makes it does more than that.")
    caller = reader.around(next_call, cst.FunctionDef)
    calls = [
        call_of(reader, name)
        for name in uses_in(reader, source, function)
        if reader.around(name, cst.FunctionDef) is caller
    ]
    found = only(calls, f"`{function.name.value}` is called {len(calls)} times in one function.")
    if found is None:
        raise NotPatchableError(f"`{function.name.value}` may be called any number of times.")
    return found


_TRAIN = frozenset("apply_gradients evaluate fit predict reduce train_on_batch".split())
_DRAW = frozenset("choice choices permutation sample".split())


def _draws(source: Source, call: cst.Call) -> bool:
    """Return True if a call draws random numbers, by its name."""
    return "random" in source.code(call.func) or called(call) in _DRAW


def only_makes(source: Source, function: cst.FunctionDef, call: cst.CSTNode) -> bool:
    """Return True if a function does nothing but return the dataset that a call in it makes.

    It neither goes over data nor draws random numbers, which would be the same in all epochs.
    """
    inner = [
        node
        for node in walk(function.body)
        if next(one for one in source.ancestors(node) if isinstance(one, _FUNCTION)) is function
    ]
    for node in inner:
        if isinstance(node, cst.For | cst.While | cst.Yield):
            return False
        if isinstance(node, cst.Call):
            unused = isinstance(source.parent(node), cst.Expr)
            if unused or _draws(source, node) or called(node) in _TRAIN:
                return False
    returned = [one.value for one in inner if isinstance(one, cst.Return) and one.value is not None]
    made = {
        given[0]
        for one in inner
        if isinstance(one, cst.SimpleStatementLine) and (given := assigned(one))
        if call in walk(one) or chain_root(given[1]) == given[0]
    }
    return bool(returned) and all(
        call in walk(one) or (isinstance(one, cst.Name) and one.value in made) for one in returned
    )


_FUNCTION = cst.FunctionDef | cst.Lambda


def _functions_read(source: Source, names: set[str]) -> bool:
    """Return True if a function of the file reads one of the module's names."""
    for function in source.all(cst.FunctionDef):
        own = source.bound(function.body)
        own |= {one.name.value for one in source.all(cst.Param, function)}
        if any(source.references(name, function.body) for name in names - own):
            return True
    return False


def iterated_data(iterated: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a `for` goes over, without `enumerate` and the like around it."""
    while isinstance(iterated, cst.Call) and called(iterated) in _PASS_ON and iterated.args:
        iterated = iterated.args[0].value
    return iterated


def _outermost(source: Source, statement: cst.CSTNode) -> _Loop | None:
    """Return the outermost loop around the statement in the same function."""
    scopes = cst.FunctionDef | cst.Lambda | cst.ClassDef
    inside = takewhile(lambda one: not isinstance(one, scopes), source.ancestors(statement))
    loops = [one for one in inside if isinstance(one, _Loop)]
    return loops[-1] if loops else None


def _sets(source: Source, loop: _Loop, name: str) -> int:
    """Return how many places of a loop give a name to something, or delete it."""
    kinds = cst.AssignTarget | cst.AugAssign | cst.Del | cst.For
    setting = (one for one in walk(loop) if isinstance(one, kinds))
    return sum(name in source.names_in(one.target) for one in setting)
