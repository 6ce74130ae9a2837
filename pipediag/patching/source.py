"""A source file as bytes with a syntax tree over it: what is not changed stays byte for byte.

Changes are made to the text, at places that the tree tells, so that comments, line ends, tabs and
whatever else the tree does not mean stay as they are. Calls are known by the offset of the called
name; a change carries these offsets along, so that several can follow one another.
"""

from __future__ import annotations

import codecs
import io
import tokenize
import warnings
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple, TypeVar

import libcst as cst
from libcst.metadata import ByteSpanPositionProvider, MetadataWrapper, ParentNodeProvider

_Node = TypeVar("_Node", bound=cst.CSTNode)
_One = TypeVar("_One")


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

    def holds(self, offset: int) -> bool:
        return self.start <= offset < self.end


Piece = bytes | Span
"""New text, or text that stands elsewhere in the file and is taken from there."""


@dataclass(frozen=True)
class Change:
    """A stretch of the text and what comes in its place."""

    span: Span
    by: tuple[Piece, ...] = ()


def insertion(offset: int, text: str) -> Change:
    """New text before the offset."""
    return Change(Span(offset, offset), (text.encode(),))


def replaced(span: Span, text: str) -> Change:
    """New text in place of the span's."""
    return Change(span, (text.encode(),))


@dataclass(frozen=True)
class Source:
    """One file, as it was or as changes have made it."""

    path: str
    data: bytes
    """The text in UTF-8, without a byte order mark."""
    encoding: str
    bom: bytes = b""
    anchors: Mapping[str, int] = field(default_factory=dict)
    """Offsets at which the called names of operations begin, by the operations' ids."""
    starts: Mapping[int, int] = field(default_factory=dict)
    """Offsets at which the lines of the file as it was begin, by their numbers."""

    @classmethod
    def of(cls, path: str, content: bytes) -> Source:
        """The file of that content."""
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
            bom = codecs.BOM_UTF8 if content.startswith(codecs.BOM_UTF8) else b""
            text = content[len(bom) :].decode(encoding.removesuffix("-sig"))
            data = text.encode()
            lines = data.split(b"\n")[:-1]
            starts = dict(enumerate(accumulate((len(one) + 1 for one in lines), initial=0), 1))
            source = cls(path, data, encoding.removesuffix("-sig"), bom, starts=starts)
            whole = source.module.code == text
        except (SyntaxError, UnicodeError, LookupError, cst.ParserSyntaxError) as error:
            raise NotPatchableError(f"{path} can't be read as Python.") from error
        if not whole:
            raise NotPatchableError(f"{path} can't be changed without changing its format.")
        return source

    @property
    def content(self) -> bytes:
        return self.bom + self.data.decode().encode(self.encoding)

    @property
    def text(self) -> str:
        return self.data.decode()

    @cached_property
    def module(self) -> cst.Module:
        return self._wrapper.module

    @cached_property
    def _wrapper(self) -> MetadataWrapper:
        return MetadataWrapper(cst.parse_module(self.text), unsafe_skip_copy=True)

    @cached_property
    def _spans(self) -> Mapping[cst.CSTNode, object]:
        return self._wrapper.resolve(ByteSpanPositionProvider)

    @cached_property
    def _parents(self) -> Mapping[cst.CSTNode, cst.CSTNode]:
        return self._wrapper.resolve(ParentNodeProvider)

    @cached_property
    def nodes(self) -> list[cst.CSTNode]:
        return list(walk(self.module))

    def all(self, kind: type[_Node], within: cst.CSTNode | None = None) -> list[_Node]:
        nodes = self.nodes if within is None else walk(within)
        return [node for node in nodes if isinstance(node, kind)]

    @cached_property
    def calls(self) -> dict[int, cst.Call]:
        """Calls of something that has a name, by the offset of that name."""
        named = ((called_name(call), call) for call in self.all(cst.Call))
        return {self.span(name).start: call for name, call in named if name is not None}

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
        found = self._spans[node]
        start: int = found.start  # type: ignore[attr-defined]
        return Span(start, start + found.length)  # type: ignore[attr-defined]

    def line(self, node: cst.CSTNode) -> int:
        """Return the line of the file as it was; of new text, the one before it."""
        found = bisect_right(self._by_start, (self.span(node).start, len(self.starts)))
        return self._by_start[found - 1][1] if found else 1

    @cached_property
    def _by_start(self) -> list[tuple[int, int]]:
        return sorted((at, line) for line, at in self.starts.items())

    def parent(self, node: cst.CSTNode) -> cst.CSTNode | None:
        return self._parents.get(node)

    def ancestors(self, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
        """Yield the nodes around a node, from its parent up to the module."""
        above = self.parent(node)
        while above is not None:
            yield above
            above = self.parent(above)

    def around(self, node: cst.CSTNode, kind: type[_Node]) -> _Node | None:
        """Return the innermost node of a kind that a node is in."""
        return next((each for each in self.ancestors(node) if isinstance(each, kind)), None)

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
        """The offset at which the next line begins; the end of the text on the last one."""
        end = self.data.find(b"\n", offset)
        return len(self.data) if end < 0 else end + 1

    def indent(self, offset: int) -> str:
        """The blanks with which the line of the offset begins."""
        start = self.line_start(offset)
        line = self.data[start:offset]
        return line[: len(line) - len(line.lstrip(b" \t"))].decode()

    def changed(self, changes: Sequence[Change]) -> Source:
        """The source after changes of stretches that do not overlap."""
        pieces = _pieces(changes, len(self.data))
        parts: list[bytes] = []
        anchors: dict[str, int] = {}
        starts: dict[int, int] = {}
        at = 0
        for piece in pieces:
            part = piece if isinstance(piece, bytes) else self.data[piece.start : piece.end]
            if isinstance(piece, Span):
                moved = at - piece.start
                anchors |= {id: moved + n for id, n in self.anchors.items() if piece.holds(n)}
                starts |= {line: moved + n for line, n in self.starts.items() if piece.holds(n)}
            parts.append(part)
            at += len(part)
        after = replace(self, data=b"".join(parts), anchors=anchors, starts=starts)
        try:
            with warnings.catch_warnings():
                # Of what the user wrote, which is none of ours to tell.
                warnings.simplefilter("ignore")
                compile(after.text, self.path, "exec", dont_inherit=True)
        except (SyntaxError, ValueError) as error:
            raise NotPatchableError("The result would not be valid Python.") from error
        return after


def walk(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """Yield a node and all that is in it, in the order of the text."""
    yield node
    for child in node.children:
        yield from walk(child)


def _pieces(changes: Sequence[Change], length: int) -> list[Piece]:
    pieces: list[Piece] = []
    at = 0
    for change in sorted(changes, key=lambda each: (each.span.start, each.span.end)):
        if change.span.start < at:
            raise NotPatchableError("Two of the changes affect the same place.")
        pieces.append(Span(at, change.span.start))
        pieces.extend(change.by)
        at = change.span.end
    return [*pieces, Span(at, length)]


def called_name(call: cst.Call) -> cst.Name | None:
    """The name that is called: `map` of `dataset.map(f)`; None where it has none."""
    if isinstance(call.func, cst.Attribute):
        return call.func.attr
    return call.func if isinstance(call.func, cst.Name) else None


def name_of(call: cst.Call) -> cst.Name:
    """The name that is called, of a call that has one."""
    name = called_name(call)
    assert name is not None
    return name


def called(node: cst.CSTNode | None) -> str | None:
    """The text of the name that a call calls; None for any other node."""
    name = called_name(node) if isinstance(node, cst.Call) else None
    return name.value if name is not None else None


def receiver(call: cst.Call) -> cst.BaseExpression | None:
    """Return the expression that a method is called on."""
    return call.func.value if isinstance(call.func, cst.Attribute) else None


def chain_root(value: cst.BaseExpression | None) -> str | None:
    """Return the variable that a chain of methods begins with: `ds` of `ds.map(f).batch(8)`."""
    while isinstance(value, cst.Call):
        value = receiver(value)
    return value.value if isinstance(value, cst.Name) else None
