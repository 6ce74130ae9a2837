"""Dataset factories: which changes are right for every pipeline that a function makes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import libcst as cst

from pipediag.patching.names import names_in
from pipediag.patching.source import Source, called_name

CALL_THEIR_FUNCTION = frozenset(
    "apply filter flat_map from_generator group_by_window interleave map scan take_while".split()
)
"""Methods of a dataset that call the given function while the pipeline is built."""
_TAKE_A_FUNCTION = CALL_THEIR_FUNCTION | {"bucket_by_sequence_length", "reduce"}
_OPERATIONS = _TAKE_A_FUNCTION | frozenset(
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

_READERS = frozenset(
    "FixedLengthRecordDataset TFRecordDataset TextLineDataset from_tensor_slices from_tensors "
    "range".split()
)
"""Sources whose dataset has the same elements in every pass."""

Call = tuple[Source, cst.CSTNode]
"""A file, and the name that is called in it."""


def builds_alike(
    source: Source,
    function: cst.FunctionDef,
    until: int,
    calls: Sequence[Call],
    optional: frozenset[str],
) -> bool:
    """Return whether all pipelines of a factory are built alike up to an offset.

    They are where no function of an operation, and no operation besides the optional ones, depends
    on what differs between the calls. Data, sizes and counts may differ.

    Args:
        source: file of the factory.
        function: the factory.
        until: offset of the end of the last call that a change touches.
        calls: all calls of the factory.
        optional: operations that a condition may add or leave out.
    """
    return _Factory(source, function, until, calls).is_alike(optional)


class _Factory:
    """One dataset factory, and the names in it whose values differ between its calls."""

    def __init__(
        self, source: Source, function: cst.FunctionDef, until: int, calls: Sequence[Call]
    ) -> None:
        self._source = source
        self._function = function
        self._until = until
        self._calls = calls
        self._inside = [
            node
            for node in source.nodes
            if source.span(node).start < until and function.body in source.ancestors(node)
        ]
        self._methods = _methods(source, function)
        self._one_instance = len({_receiver(where, name) for where, name in calls}) == 1
        self._differing = {
            name for name in _parameters(function) if not _given_alike(function, name, calls)
        }
        self._datasets = {
            name.value for call in self._operations() if (name := _root(call)) is not None
        }
        self._spread()

    def is_alike(self, optional: frozenset[str]) -> bool:
        """Return whether the pipelines differ in data, sizes and optional operations alone."""
        for node in self._inside:
            match node:
                case cst.If() if self._depends(node.test):
                    harmless = self._is_harmless(node, optional)
                case cst.IfExp() if self._depends(node.test):
                    harmless = self._has_only(node, optional)
                case cst.Match() if self._depends(node.subject):
                    harmless = self._has_only(node, frozenset())
                case cst.For() if self._depends(node.iter):
                    harmless = self._has_only(node, frozenset())
                case cst.Call() if self._source.span(_named(node)).start < self._until:
                    harmless = not self._calls_otherwise(node)
                case _:
                    continue
            if not harmless:
                return False
        return "shuffle" in optional or not self._has_foreign_source(optional)

    def _spread(self) -> None:
        """Add the names whose values are computed from differing ones, or chosen by them."""
        while True:
            before = len(self._differing)
            for node in self._inside:
                match node:
                    case cst.Assign() if self._depends(node.value):
                        self._differing |= _targets(self._source, node)
                    case cst.For() if self._depends(node.iter):
                        self._differing |= names_in(self._source, node.target)
                    case cst.If() if self._depends(node.test):
                        for each in self._within(node):
                            if isinstance(each, cst.Assign) and not self._rebinds(each):
                                self._differing |= _targets(self._source, each)
                            elif isinstance(each, cst.FunctionDef):
                                self._differing.add(each.name.value)
            if len(self._differing) == before:
                return

    def _within(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        return (each for each in self._inside if node in self._source.ancestors(each))

    def _operations(self, within: cst.CSTNode | None = None) -> list[cst.Call]:
        nodes = self._inside if within is None else self._within(within)
        return [
            node
            for node in nodes
            if isinstance(node, cst.Call)
            and isinstance(node.func, cst.Attribute)
            and node.func.attr.value in _OPERATIONS
        ]

    def _depends(self, node: cst.CSTNode) -> bool:
        """Return whether a value may differ between the calls of the factory."""
        return any(
            (isinstance(each, cst.Name) and self._is_differing_name(each))
            or (isinstance(each, cst.Attribute) and self._is_differing_attribute(each))
            for each in self._inside
            if each is node or node in self._source.ancestors(each)
        )

    def _is_differing_name(self, name: cst.Name) -> bool:
        parent = self._source.parent(name)
        is_label = (isinstance(parent, cst.Attribute) and parent.attr is name) or (
            isinstance(parent, cst.Arg) and parent.keyword is name
        )
        return not is_label and name.value in self._differing

    def _is_differing_attribute(self, node: cst.Attribute) -> bool:
        """Return whether it is an attribute of `self`, no method, of more than one instance."""
        owner = node.value
        return (
            isinstance(owner, cst.Name)
            and owner.value in ("self", "cls")
            and node.attr.value not in self._methods
            and not self._one_instance
        )

    def _is_harmless(self, node: cst.If, optional: frozenset[str]) -> bool:
        """Return whether a chosen block only adds optional operations, or ends with an error."""
        returns = any(isinstance(each, cst.Return) for each in self._within(node))
        return not returns and self._has_only(node, optional)

    def _has_only(self, node: cst.CSTNode, optional: frozenset[str]) -> bool:
        called = {name.value for call in self._operations(node) if (name := called_name(call))}
        hands_on = any(
            isinstance(each, cst.Call) and self._takes_a_dataset(each)
            for each in self._within(node)
        )
        return called <= optional and not hands_on

    def _takes_a_dataset(self, call: cst.Call) -> bool:
        """Return whether a dataset is an argument: `augment(ds)`; its operations are unknown."""
        return any(
            isinstance(each, cst.Name) and each.value in self._datasets
            for arg in call.args
            for each in [arg.value]
        )

    def _calls_otherwise(self, call: cst.Call) -> bool:
        """Return whether the function that is called, or that an operation gets, may differ."""
        if isinstance(call.func, cst.Name) and call.func.value in self._differing:
            return True
        if not isinstance(call.func, cst.Attribute):
            return False
        if self._takes_a_dataset(call) and self._depends(call.func.value):
            root = _root(call)
            return root is None or root.value not in self._datasets
        takes = call.func.attr.value in _TAKE_A_FUNCTION
        return takes and any(
            self._depends(arg.value)
            for arg in call.args
            if arg.keyword is None or arg.keyword.value not in _PLAIN_ARGUMENTS
        )

    def _rebinds(self, node: cst.Assign) -> bool:
        """Return whether it has the form `name = name.operation(...)`."""
        root = _root(node.value)
        targets = _targets(self._source, node)
        return root is not None and targets == {root.value} and root.value in self._datasets

    def _has_foreign_source(self, optional: frozenset[str]) -> bool:
        """Return whether a caller hands over a dataset that may differ from pass to pass."""
        given = set(_parameters(self._function)) & self._differing
        for node in self._inside:
            if isinstance(node, cst.Assign) and not isinstance(_innermost(node.value), cst.Call):
                root = _first_name(_innermost(node.value))
                if root in self._differing and _targets(self._source, node) & self._datasets:
                    given |= _targets(self._source, node) - {root}
        foreign = given & self._datasets
        if not foreign <= set(_positional(self._function)):
            return True
        handed = [
            (where, given_for(self._function, name, call))
            for name in foreign
            for where, use in self._calls
            if isinstance(call := where.parent(use), cst.Call)
        ]
        return not all(_reads_alike(where, value, optional) for where, value in handed)


def _reads_alike(
    source: Source, value: cst.BaseExpression | None, optional: frozenset[str]
) -> bool:
    """Return whether a dataset reads the same elements in each pass: files or arrays, in order."""
    if isinstance(value, cst.Name):
        scope = _scope(source, value)
        found = [
            node.value
            for node in source.nodes
            if isinstance(node, cst.Assign)
            and _scope(source, node) is scope
            and value.value in _targets(source, node)
        ]
        same = [
            each for each in found if (root := _root(each)) is None or root.value != value.value
        ]
        chained = [_called_within(each) for each in found if each not in same]
        return bool(same) and all(
            [
                *(_reads_alike(source, each, optional) for each in same),
                *(c <= optional for c in chained),
            ]
        )
    inner = _innermost(value) if value is not None else None
    if value is None or not isinstance(inner, cst.Call) or not _called_within(value) <= optional:
        return False
    return source.code(inner.func).rpartition(".")[2] in _READERS


def _called_within(value: cst.BaseExpression) -> set[str]:
    """Return the operations of a chain."""
    found: set[str] = set()
    while (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Attribute)
        and value.func.attr.value in _OPERATIONS
    ):
        found.add(value.func.attr.value)
        value = value.func.value
    return found


def _named(call: cst.Call) -> cst.CSTNode:
    return called_name(call) or call.func


def _methods(source: Source, function: cst.FunctionDef) -> set[str]:
    body = source.parent(function)
    statements = body.body if isinstance(body, cst.IndentedBlock) else ()
    return {each.name.value for each in statements if isinstance(each, cst.FunctionDef)}


def _parameters(function: cst.FunctionDef) -> list[str]:
    given = function.params
    found = [each.name.value for each in (*given.params, *given.kwonly_params)]
    found += [
        each.name.value
        for each in (given.star_arg, given.star_kwarg)
        if isinstance(each, cst.Param)
    ]
    return [name for name in found if name not in ("self", "cls")]


def _given_alike(function: cst.FunctionDef, name: str, calls: Sequence[Call]) -> bool:
    """Return whether all calls, from one function, hand over the same variable or constant."""
    if len({(where.path, id(_scope(where, each))) for where, each in calls}) != 1:
        return False
    texts: set[str | None] = set()
    for where, each in calls:
        call = where.parent(each)
        if not isinstance(call, cst.Call) or any(arg.star for arg in call.args):
            return False
        value = given_for(function, name, call)
        if value is not None and any(isinstance(n, cst.Call) for n in _below(where, value)):
            return False
        texts.add(None if value is None else where.code(value))
    return len(texts) == 1


def given_for(function: cst.FunctionDef, name: str, call: cst.Call) -> cst.BaseExpression | None:
    """Return what a call of a function, or of a method, gives for a parameter; None for nothing."""
    names = [each for each in _positional(function) if each not in ("self", "cls")]
    unnamed = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
    for arg in call.args:
        if arg.keyword is not None and arg.keyword.value == name:
            return arg.value
    place = names.index(name) if name in names else len(unnamed)
    return unnamed[place] if place < len(unnamed) else None


def _positional(function: cst.FunctionDef) -> list[str]:
    return [each.name.value for each in function.params.params]


def _below(source: Source, node: cst.CSTNode) -> list[cst.CSTNode]:
    return [each for each in source.nodes if each is node or node in source.ancestors(each)]


def _scope(source: Source, node: cst.CSTNode) -> cst.CSTNode | None:
    return next((n for n in source.ancestors(node) if isinstance(n, cst.FunctionDef)), None)


def _receiver(source: Source, name: cst.CSTNode) -> str | None:
    return source.code(name.value) if isinstance(name, cst.Attribute) else None


def _targets(source: Source, node: cst.Assign) -> set[str]:
    return set().union(*(names_in(source, each.target) for each in node.targets))


def _innermost(value: cst.BaseExpression) -> cst.BaseExpression:
    """Return what a chain of dataset operations begins with."""
    while (
        isinstance(value, cst.Call)
        and isinstance(value.func, cst.Attribute)
        and value.func.attr.value in _OPERATIONS
    ):
        value = value.func.value
    return value


def _root(value: cst.BaseExpression) -> cst.Name | None:
    """Return the variable that a chain of dataset operations begins with."""
    if isinstance(value, cst.Call) and (name := called_name(value)) and name.value in _OPERATIONS:
        found = _innermost(value)
        return found if isinstance(found, cst.Name) else None
    return None


def _first_name(value: cst.BaseExpression) -> str | None:
    while isinstance(value, cst.Attribute | cst.Subscript):
        value = value.value
    return value.value if isinstance(value, cst.Name) else None
