"""A source file as bytes with a syntax tree over it: what is not changed stays byte for byte.

Changes are made to the text, at places that the tree tells, so that comments, line ends, tabs and
whatever else the tree does not mean stay as they are. Calls are known by the offset of the called
name; a change carries these offsets along, so that several can follow one another.
"""

from __future__ import annotations

import warnings
from bisect import bisect_right
from codecs import BOM_UTF8
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from itertools import accumulate, chain, count
from typing import NamedTuple, TypeVar

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper

from pipediag.session.edits import AUTOTUNE
from pipediag.vocabulary import Scalar

_Node = TypeVar("_Node", bound=cst.CSTNode)
_One = TypeVar("_One")
_TUNED = ("num_parallel_calls", "num_parallel_reads", "buffer_size", "cycle_length")


class NotPatchableError(Exception):
    """The source can't be changed safely; the message is one sentence for the user."""


class MadeInALoopError(NotPatchableError):
    """The call is in a loop, which makes another pipeline or model each time."""


def only(found: Iterable[_One], otherwise: str) -> _One:
    """Return the one that was found."""
    several = list(found)
    if len(several) != 1:
        raise NotPatchableError(otherwise)
    return several[0]


class Span(NamedTuple):
    """A stretch of a file's text, in bytes of UTF-8."""

    start: int
    end: int


Piece = bytes | Span
"""New text, or text that stands elsewhere in the file and is taken from there."""


@dataclass(frozen=True)
class Change:
    """A stretch of the text and what comes in its place."""

    span: Span
    by: tuple[Piece, ...] = ()

    @classmethod
    def insert(cls, offset: int, text: str) -> Change:
        """Put new text before the offset."""
        return cls(Span(offset, offset), (text.encode(),))

    @classmethod
    def replace(cls, span: Span, text: str) -> Change:
        """Put new text in place of the span's."""
        return cls(span, (text.encode(),))


class _Tree:
    """The syntax tree of a text."""

    def __init__(self, text: str) -> None:
        self._wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
        self.module = self._wrapper.module

    @cached_property
    def spans(self) -> Mapping[cst.CSTNode, object]:
        return self._wrapper.resolve(ByteSpanPositionProvider)

    @cached_property
    def parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        """The node around each one, in the order of the text: twice as fast as libcst's own."""
        found: dict[cst.CSTNode, cst.CSTNode] = {}

        def add(node: cst.CSTNode) -> None:
            for child in node.children:
                found[child] = node
                add(child)

        add(self.module)
        return found


@lru_cache(maxsize=16)
def _parsed(path: str, data: bytes) -> _Tree:
    """Return the tree of a file, which each edit reads anew, as each change before it left it.

    Raises:
        NotPatchableError: it is no Python, or has something that a tree does not keep.
    """
    try:
        tree, text = _Tree(data.decode()), data.decode()
    except (UnicodeError, cst.ParserSyntaxError) as error:
        raise NotPatchableError(f"{path} can't be read as Python in UTF-8.") from error
    if tree.module.code != text:
        raise NotPatchableError(f"{path} can't be changed without changing its format.")
    return tree


@dataclass(frozen=True)
class Source:
    """One file, as it was or as changes have made it."""

    path: str
    data: bytes
    """The text in UTF-8, without a byte order mark."""
    mark: bytes = b""
    """The byte order mark, where the file begins with one."""
    anchors: Mapping[str, int] = field(default_factory=dict)
    """Offsets at which the called names of operations begin, by the operations' ids."""
    starts: Mapping[int, int] = field(default_factory=dict)
    """Offsets at which the lines of the file as it was begin, by their numbers."""
    is_imported: bool = False
    """True if the program imports it, so that its block for `__main__` does not run."""

    @classmethod
    def of(cls, path: str, content: bytes) -> Source:
        """Return the file of that content."""
        data = content.removeprefix(BOM_UTF8)
        lines = data.split(b"\n")[:-1]
        starts = dict(enumerate(accumulate((len(one) + 1 for one in lines), initial=0), 1))
        return cls(path, data, content[: len(content) - len(data)], starts=starts)

    @property
    def content(self) -> bytes:
        return self.mark + self.data

    @property
    def text(self) -> str:
        return self.data.decode()

    @cached_property
    def _tree(self) -> _Tree:
        return _parsed(self.path, self.data)

    @property
    def module(self) -> cst.Module:
        return self._tree.module

    @cached_property
    def nodes(self) -> list[cst.CSTNode]:
        return [self.module, *self._tree.parents]

    def all(self, kind: type[_Node], within: cst.CSTNode | None = None) -> list[_Node]:
        nodes = self.nodes if within is None else walk(within)
        return [node for node in nodes if isinstance(node, kind)]

    @cached_property
    def calls(self) -> dict[int, cst.Call]:
        """Calls of something that has a name, by the offset of that name."""
        named = (call for call in self.all(cst.Call) if called(call) is not None)
        return {self.span(name_of(call)).start: call for call in named}

    def calls_of(self, *names: str, line: int | None = None) -> list[cst.Call]:
        return [
            call
            for call in self.calls.values()
            if called(call) in names and line in (None, self.line(name_of(call)))
        ]

    def only_call_of(self, name: str, line: int) -> cst.Call:
        calls = self.calls_of(name, line=line)
        return only(calls, f"Line {line} calls `{name}` {len(calls)} times.")

    def span(self, node: cst.CSTNode) -> Span:
        """Return the place of the node, without parentheses around it."""
        found = self._tree.spans[node]
        start: int = found.start  # type: ignore[attr-defined]
        return Span(start, start + found.length)  # type: ignore[attr-defined]

    def line(self, node: cst.CSTNode) -> int:
        """Return the line of the file as it was; of new text, the one before it."""
        return self.lines(node)[0]

    def lines(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return the first and the last such line of a node."""
        span = self.span(node)
        ends = (span.start, max(span.start, span.end - 1))
        found = (bisect_right(self._by_start, (end, len(self.starts))) for end in ends)
        first, last = (self._by_start[place - 1][1] if place else 1 for place in found)
        return first, last

    @cached_property
    def _by_start(self) -> list[tuple[int, int]]:
        return sorted((at, line) for line, at in self.starts.items())

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._tree.parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the nodes around a node, from its parent up to the module."""
        above = self.parent(node)
        while above is not None:
            yield above
            above = self.parent(above)

    def around(self, node: cst.CSTNode, kind: type[_Node]) -> _Node | None:
        """Return the innermost node of a kind that a node is in."""
        return next((each for each in self.ancestors(node) if isinstance(each, kind)), None)

    def class_of(self, function: cst.FunctionDef) -> cst.ClassDef | None:
        """Return the class of which a function is a method."""
        above = self.parent(self.parent(function) or function)
        return above if isinstance(above, cst.ClassDef) else None

    def code(self, node: cst.CSTNode) -> str:
        span = self.span(node)
        return self.data[span.start : span.end].decode()

    def call(self, op_id: str) -> cst.Call:
        call = self.calls.get(self.anchors.get(op_id, -1))
        if call is None:
            raise NotPatchableError("Two of the changes affect the same call.")
        return call

    @property
    def newline(self) -> str:
        first = self.data.find(b"\n")
        return "\r\n" if first > 0 and self.data[first - 1 : first] == b"\r" else "\n"

    def line_start(self, offset: int) -> int:
        return self.data.rfind(b"\n", 0, offset) + 1

    def next_line(self, offset: int) -> int:
        """Return the offset at which the next line begins; on the last one the text's end."""
        end = self.data.find(b"\n", offset)
        return len(self.data) if end < 0 else end + 1

    def indent(self, offset: int) -> str:
        """Return the blanks with which the line of the offset begins."""
        line = self.data[self.line_start(offset) : offset]
        return line[: len(line) - len(line.lstrip(b" \t"))].decode()

    def changed(self, changes: Sequence[Change]) -> Source:
        """Return the source after changes of stretches that do not overlap."""
        data = b""
        anchors: dict[str, int] = {}
        starts: dict[int, int] = {}
        for piece in _pieces(changes, len(self.data)):
            if isinstance(piece, Span):
                by, kept = len(data) - piece.start, range(*piece)
                anchors |= {id: by + at for id, at in self.anchors.items() if at in kept}
                starts |= {line: by + at for line, at in self.starts.items() if at in kept}
            data += piece if isinstance(piece, bytes) else self.data[piece.start : piece.end]
        after = replace(self, data=data, anchors=anchors, starts=starts)
        try:
            with warnings.catch_warnings():
                # Of what the user wrote, which is none of ours to tell.
                warnings.simplefilter("ignore")
                compile(after.text, self.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise NotPatchableError("The result would not be valid Python.") from error
        return after

    def tensorflow(self) -> str | None:
        """Return TensorFlow's name at the file's outermost level, or None."""
        named = (name for name, module in self.modules().items() if module == "tensorflow")
        return next(named, None)

    def needed_tensorflow(self) -> str:
        """Return TensorFlow's name in a file that needs it."""
        name = self.tensorflow()
        if name is None:
            raise NotPatchableError("TensorFlow is not imported under a name in this file.")
        return name

    def modules(self) -> dict[str, str]:
        """Return the modules that are imported at the outermost level, by their names."""
        return {
            alias.evaluated_alias or self.code(alias.name): self.code(alias.name)
            for statement in self._top_imports
            for small in statement.body
            if isinstance(small, cst.Import)
            for alias in small.names
        }

    @cached_property
    def _top_imports(self) -> list[cst.SimpleStatementLine]:
        return [
            each
            for each in self.module.body
            if isinstance(each, cst.SimpleStatementLine)
            and any(isinstance(small, cst.Import | cst.ImportFrom) for small in each.body)
        ]

    def last_import(self, before: int) -> cst.SimpleStatementLine:
        """Return the last import at the outermost level that stands before an offset."""
        found = [each for each in self._top_imports if self.span(each).end <= before]
        if not found:
            raise NotPatchableError("The file has no import before this line.")
        return found[-1]

    def imported_as(self, name: str) -> list[cst.CSTNode]:
        """Return what reads something that is imported from a module by that name: `make(x)`,
        `data.make(x)`."""
        names: set[str] = set()
        modules: set[str] = set()
        for node in self.nodes:
            if not isinstance(node, cst.Import | cst.ImportFrom):
                continue
            if isinstance(node.names, cst.ImportStar):
                names.add(name)
                continue
            for alias in node.names:
                code = self.code(alias.name)
                known = alias.evaluated_alias or code.partition(".")[0]
                (names if code == name else modules).add(known)
        attributes = [
            node
            for node in self.all(cst.Attribute)
            if node.attr.value == name and self.code(node.value).partition(".")[0] in modules
        ]
        return [*attributes, *(each for one in sorted(names) for each in self.references(one))]

    def written(self, name: str, value: Scalar) -> str:
        """Return a parameter's value as source."""
        if is_tuned(name, value):
            module = self.tensorflow()
            return f"{module}.data.AUTOTUNE" if module else str(AUTOTUNE)
        return f'"{value}"' if isinstance(value, str) and value.isidentifier() else repr(value)

    def free_name(self, wanted: str) -> str:
        """Return the wanted name, numbered if need be, so that it does not occur in the file."""
        taken = self.names_in(self.module)
        numbered = (f"{wanted}_{number}" for number in count(2))
        return next(name for name in chain((wanted,), numbered) if name not in taken)

    def references(self, name: str, within: cst.CSTNode | None = None) -> list[cst.Name]:
        """Return the places that read a variable; attributes and keywords are none."""
        named = (node for node in self.all(cst.Name, within) if node.value == name)
        return [node for node in named if self._is_read(node)]

    def _is_read(self, node: cst.Name) -> bool:
        parent = self.parent(node)
        if isinstance(parent, cst.Attribute | cst.Arg):
            return parent.value is node
        named = cst.AssignTarget | cst.AsName | cst.Param | cst.ImportAlias
        return not isinstance(parent, named | cst.FunctionDef | cst.ClassDef)

    def has(self, name: str) -> bool:
        """Return True if a name is in the text; where it is not, the text need not be parsed."""
        return name.encode() in self.data

    def is_parameter(self, name: cst.Name) -> bool:
        """Return True if a function around it gets it from its callers."""
        return any(
            each.name.value == name.value
            for above in self.ancestors(name)
            if isinstance(above, cst.FunctionDef | cst.Lambda)
            for each in self.all(cst.Param, above.params)
        )

    def bound(self, statement: cst.CSTNode) -> set[str]:
        """Return names that a statement, or what is in it, gives a value."""
        found: set[str] = set()
        for node in walk(statement):
            match node:
                case cst.FunctionDef() | cst.ClassDef():
                    found.add(node.name.value)
                case cst.ImportAlias():
                    found.add(node.evaluated_alias or self.code(node.name).partition(".")[0])
                case cst.AsName(name=target):
                    found |= self.names_in(target)
                case (
                    cst.AssignTarget(target=target)
                    | cst.AnnAssign(target=target)
                    | cst.AugAssign(target=target)
                    | cst.For(target=target)
                    | cst.NamedExpr(target=target)
                ):
                    found |= self.names_in(target)
        return found

    def names_in(self, part: cst.CSTNode) -> set[str]:
        """Return every name that occurs in a part of the file."""
        return {node.value for node in self.all(cst.Name, part)}


def is_tuned(name: str, value: Scalar) -> bool:
    """Return True if TensorFlow adapts a parameter of that value while it runs."""
    return value == AUTOTUNE and name in _TUNED


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and all that is in it, in the order of the text."""
    yield node
    for child in node.children:
        yield from walk(child)


def _pieces(changes: Sequence[Change], length: int) -> Iterator[Piece]:
    at = 0
    for change in sorted(changes, key=lambda each: each.span):
        if change.span.start < at:
            raise NotPatchableError("Two of the changes affect the same place.")
        yield Span(at, change.span.start)
        yield from change.by
        at = change.span.end
    yield Span(at, length)


def called(node: cst.CSTNode | None) -> str | None:
    """Return the name that is called: `map` of `dataset.map(f)`; None for any other node."""
    match node:
        case cst.Call(func=cst.Attribute(attr=name)) | cst.Call(func=cst.Name() as name):
            return name.value
    return None


def name_of(call: cst.Call) -> cst.Name:
    """Return the node of the name that is called, of a call that has one."""
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    assert isinstance(name, cst.Name)
    return name


def receiver(call: cst.Call) -> cst.BaseExpression | None:
    """Return the expression that a method is called on."""
    return call.func.value if isinstance(call.func, cst.Attribute) else None


def chain_root(value: cst.BaseExpression | None) -> str | None:
    """Return the variable that a chain of methods begins with: `ds` of `ds.map(f).batch(8)`."""
    while isinstance(value, cst.Call):
        value = receiver(value)
    return value.value if isinstance(value, cst.Name) else None
