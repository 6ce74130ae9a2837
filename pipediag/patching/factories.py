"""Dataset factories: which changes are right for every pipeline that a function makes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeGuard

import libcst as cst

from pipediag.patching.chains import argument
from pipediag.patching.source import Source, called, walk

CALL_THEIR_FUNCTION = frozenset(
    "apply filter flat_map from_generator group_by_window interleave map scan take_while".split()
)
"""Methods of a dataset that call the given function while the pipeline is built."""
_TAKE_A_FUNCTION = CALL_THEIR_FUNCTION | {"bucket_by_sequence_length", "reduce"}
OPERATIONS = _TAKE_A_FUNCTION | frozenset(
    "batch cache concatenate enumerate padded_batch prefetch ragged_batch rebatch repeat shard "
    "shuffle skip snapshot sparse_batch take unbatch unique window with_options zip".split()
)
_PLAIN_ARGUMENTS = frozenset(
    "args block_length cycle_length deterministic name num_parallel_calls output_shapes "
    "output_signature output_types".split()
)
"""Arguments of operations with a function that don't change what the elements are."""
SAME_ELEMENTS = frozenset("prefetch shard skip take with_options".split())
"""Operations that a caller may choose before a cache: the elements they hand on stay the same in
every epoch."""
ANY_ORDER = SAME_ELEMENTS | {"cache", "repeat", "shuffle"}
"""Operations that a caller may choose next to an operation that moves: they look at no element."""

_Assignment = cst.Assign | cst.AnnAssign
Call = tuple[Source, cst.CSTNode]
"""A file, and the name that is called in it."""


class Factory:
    """One dataset factory, and the names in it whose values differ between its calls.

    Its code counts up to an offset. `one_object` says that all calls are of one object's method.
    """

    def __init__(
        self,
        source: Source,
        function: cst.FunctionDef,
        until: int,
        calls: Sequence[Call],
        one_object: bool = False,
    ) -> None:
        self._source = source
        self._until = until
        data = {each for one in _generators(source, function) for each in walk(one)}
        inside = (each for each in walk(function.body) if source.span(each).start < until)
        self._inside = [each for each in inside if each not in data]
        block = source.parent(function)
        siblings = block.body if isinstance(block, cst.IndentedBlock) else ()
        self._methods = _of_no_data(one for one in siblings if isinstance(one, cst.FunctionDef))
        receivers = {
            where.code(name.value) if isinstance(name, cst.Attribute) else None
            for where, name in calls
        }
        self._one_instance = one_object or len(receivers) == 1
        self._one_instance &= function.name.value != "__init__"
        self._given = {
            name
            for name in function_parameters(function)
            if not _given_alike(function, name, calls)
        }
        self._differing = set(self._given)
        self._datasets = {_root(node) for node in self._inside if _is_operation(node)} - {None}
        self._spread()

    def is_alike(self, optional: frozenset[str]) -> bool:
        """Return True if the pipelines differ in data, sizes, counts and optional operations alone.

        No function of an operation, and no operation besides the optional ones, may depend on what
        differs between the calls; conditions may add the optional ones or leave them out.
        """
        for node in self._inside:
            match node:
                case cst.If(test=choice) | cst.IfExp(test=choice):
                    harmless = not self._depends(choice) or self._only_adds(node, optional)
                case cst.Match(subject=choice) | cst.For(iter=choice):
                    harmless = not self._depends(choice) or self._only_adds(node, frozenset())
                case cst.Call(func=cst.Attribute(attr=name)) | cst.Call(func=name) if (
                    self._source.span(name).start < self._until
                ):
                    harmless = not self._calls_otherwise(node)
                case _:
                    continue
            if not harmless:
                return False
        return "shuffle" in optional or not self._reads_from_its_callers()

    def _spread(self) -> None:
        """Add the names whose values are computed from differing ones, or chosen by them."""
        before = -1
        while len(self._differing) > before:
            before = len(self._differing)
            for node in self._inside:
                match node:
                    case cst.Assign() | cst.AnnAssign() if node.value and self._depends(node.value):
                        self._differing |= _targets(self._source, node)
                    case cst.For() if self._depends(node.iter):
                        self._differing |= self._source.names_in(node.target)
                    case cst.If() if self._depends(node.test):
                        for each in walk(node):
                            if isinstance(each, _Assignment) and not self._rebinds(each):
                                self._differing |= _targets(self._source, each)
                        defined = self._source.all(cst.FunctionDef, node)
                        self._differing |= {each.name.value for each in defined}
                    case cst.FunctionDef() if self._reads_what_differs(node):
                        self._differing.add(node.name.value)

    def _reads_what_differs(self, function: cst.FunctionDef) -> bool:
        """Return True if a function in the factory reads a differing name that is not its own."""
        own = self._source.bound(function.body) | {*function_parameters(function)}
        return any(
            self._differs(one) and not (isinstance(one, cst.Name) and one.value in own)
            for one in walk(function.body)
        )

    def _depends(self, node: cst.CSTNode) -> bool:
        """Return True if a value may differ between the calls of the factory."""
        return any(map(self._differs, walk(node)))

    def _differs(self, node: cst.CSTNode) -> bool:
        match node, self._source.parent(node):
            case cst.Name(), cst.Attribute(attr=label) | cst.Arg(keyword=label) if label is node:
                return False
            case cst.Name(), cst.Attribute() as read if _of_self(read) and not self._one_instance:
                return False  # what is read of it counts
            case cst.Name(), _:
                return node.value in self._differing
            case cst.Attribute(), _ if _of_self(node):
                return node.attr.value not in self._methods and not self._one_instance
        return False

    def _only_adds(self, node: cst.CSTNode, optional: frozenset[str]) -> bool:
        """Return True if what is chosen only adds optional operations, or ends with an error."""
        calls = self._source.all(cst.Call, node)
        added = [call for call in calls if _is_operation(call)]
        return (
            {called(call) for call in added} <= optional
            and not any(map(self._takes_a_dataset, calls))
            and not self._source.all(cst.Return, node)
        )

    def _takes_a_dataset(self, call: cst.Call) -> bool:
        values = (arg.value for arg in call.args)
        return any(isinstance(one, cst.Name) and one.value in self._datasets for one in values)

    def _calls_otherwise(self, call: cst.Call) -> bool:
        """Return True if the function that is called, or that an operation gets, may differ."""
        if isinstance(call.func, cst.Name) and call.func.value in self._differing:
            return True
        if not isinstance(call.func, cst.Attribute):
            return False
        if self._takes_a_dataset(call) and self._depends(call.func.value):
            return _root(call) not in self._datasets
        takes = call.func.attr.value in _TAKE_A_FUNCTION
        # What a generator yields is data.
        generates = called(call) == "from_generator"
        return takes and any(
            self._depends(arg.value)
            for arg in call.args
            if (arg.keyword is None or arg.keyword.value not in _PLAIN_ARGUMENTS)
            and not (generates and isinstance(arg.value, cst.Lambda))
        )

    def _rebinds(self, node: _Assignment) -> bool:
        root = _root(node.value)
        return root in self._datasets and _targets(self._source, node) == {root}

    def _reads_from_its_callers(self) -> bool:
        """Return True if a caller hands over a dataset, which may differ from pass to pass."""
        given = set(self._given)
        for node in self._inside:
            if isinstance(node, cst.For) and not given.isdisjoint(self._source.names_in(node.iter)):
                given |= self._source.names_in(node.target)
            if isinstance(node, cst.Assign | cst.AnnAssign) and node.value:
                value = _innermost(node.value)
                while isinstance(value, cst.Attribute | cst.Subscript):
                    value = value.value
                if isinstance(value, cst.Name) and value.value in given:
                    given |= _targets(self._source, node)
        return not given.isdisjoint(self._datasets)


def _of_no_data(methods: Iterable[cst.FunctionDef]) -> set[str]:
    """Return the methods of a class that read nothing of `self` but such methods, or yield data."""
    read: dict[str, set[str]] = {}
    for method in methods:
        nodes = [*walk(method.body)]
        own = {one.attr.value for one in nodes if isinstance(one, cst.Attribute) and _of_self(one)}
        generates = any(isinstance(one, cst.Yield) for one in nodes)
        read[method.name.value] = set() if generates else own
    found, before = set(read), -1
    while len(found) != before:
        before = len(found)
        found = {name for name in found if read[name] <= found}
    return found


def _of_self(node: cst.Attribute) -> bool:
    return isinstance(node.value, cst.Name) and node.value.value in ("self", "cls")


def _generators(source: Source, function: cst.FunctionDef) -> list[cst.FunctionDef]:
    """Return functions within it that are handed to `from_generator`: what they yield is data."""
    calls = source.all(cst.Call, function)
    given = [each.args[0].value for each in calls if called(each) == "from_generator" and each.args]
    names = {one.value for each in given for one in walk(each) if isinstance(one, cst.Name)}
    return [each for each in source.all(cst.FunctionDef, function) if each.name.value in names]


def _is_operation(node: cst.CSTNode) -> TypeGuard[cst.Call]:
    is_method = isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute)
    return is_method and called(node) in OPERATIONS


def function_parameters(function: cst.FunctionDef) -> list[str]:
    """Return the names of a function's parameters, without that of its object."""
    return [
        each.name.value
        for each in function.params.children
        if isinstance(each, cst.Param) and each.name.value not in ("self", "cls")
    ]


def _given_alike(function: cst.FunctionDef, name: str, calls: Sequence[Call]) -> bool:
    """Return True if all calls, from one function, hand over the same variable or constant."""
    around = {(where.path, where.around(each, cst.FunctionDef)) for where, each in calls}
    if len(around) != 1 or any(where.around(each, cst.Lambda) for where, each in calls):
        return False
    texts: set[str | None] = set()
    for where, each in calls:
        call = where.parent(each)
        if not isinstance(call, cst.Call) or any(arg.star for arg in call.args):
            return False
        value = argument(call, name, function_parameters(function))
        if value is not None and where.all(cst.Call, value):
            return False
        texts.add(None if value is None else where.code(value))
    return len(texts) == 1


def reaching(
    source: Source, function: cst.FunctionDef, place: cst.CSTNode, calls: Sequence[Call]
) -> list[Call]:
    """Return the calls of a function that may reach a place in it.

    Left out are those that give `True`, `False` or `None` for a parameter by which an `if` around
    the place chooses the other branch.
    """
    elsewhere = _leading_elsewhere(source, function, place)
    return [
        (where, name)
        for where, name in calls
        if not any(
            _given(function, parameter, where.parent(name)) in values
            for parameter, values in elsewhere.items()
        )
    ]


_TRUE, _FALSY, _NONE = frozenset({"True"}), frozenset({"False", "None"}), frozenset({"None"})


def _leading_elsewhere(
    source: Source, function: cst.FunctionDef, place: cst.CSTNode
) -> dict[str, frozenset[str]]:
    """Return parameters with the values by which an `if` does not lead to the place."""
    found: dict[str, frozenset[str]] = {}
    free, node = set(function_parameters(function)) - source.bound(function.body), place
    for above in source.ancestors(place):
        if above is function:
            break
        if isinstance(above, cst.If) and node is not above.test:
            test, holds = above.test, node is above.body
            if isinstance(test, cst.UnaryOperation) and isinstance(test.operator, cst.Not):
                test, holds = test.expression, not holds
            match test:
                case cst.Name(value=name) if name in free:
                    found[name] = _FALSY if holds else _TRUE
                case cst.Comparison(
                    left=cst.Name(value=name),
                    comparisons=[
                        cst.ComparisonTarget(
                            operator=cst.Is() | cst.IsNot() as operator,
                            comparator=cst.Name(value="None"),
                        )
                    ],
                ) if name in free:
                    is_none = isinstance(operator, cst.Is) is holds
                    found[name] = (_TRUE | _FALSY) - _NONE if is_none else _NONE
        node = above
    return found


def _given(function: cst.FunctionDef, parameter: str, call: cst.CSTNode | None) -> str | None:
    """Return a constant such as `True` that a call gives, or leaves to the default."""
    if not isinstance(call, cst.Call) or any(arg.star for arg in call.args):
        return None
    value = argument(call, parameter, function_parameters(function))
    if value is None:
        found = [one for one in function.params.children if isinstance(one, cst.Param)]
        value = next((one.default for one in found if one.name.value == parameter), None)
    return value.value if isinstance(value, cst.Name) else None


def _targets(source: Source, node: _Assignment) -> set[str]:
    targets = node.targets if isinstance(node, cst.Assign) else [node]
    return set().union(*(source.names_in(each.target) for each in targets))


def _innermost(value: cst.BaseExpression) -> cst.BaseExpression:
    while _is_operation(value) and isinstance(value.func, cst.Attribute):
        value = value.func.value
    return value


def _root(value: cst.BaseExpression | None) -> str | None:
    found = _innermost(value) if value and called(value) in OPERATIONS else None
    return found.value if isinstance(found, cst.Name) else None
