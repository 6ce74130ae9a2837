"""Reads reports back: pages with the standard library's parser, and what a terminal shows."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass, field
from html.parser import HTMLParser

from rich.console import Console

VOID = {"meta", "link", "br", "img", "input", "hr"}


@dataclass
class Element:
    tag: str
    attributes: dict[str, str | None]
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def find(self, tag: str) -> list[Element]:
        """All descendants of that tag, in document order."""
        return [
            found
            for child in self.children
            for found in ([child] if child.tag == tag else []) + child.find(tag)
        ]

    def words(self) -> str:
        return " ".join([self.text, *(child.words() for child in self.children)])


class Page(HTMLParser):
    """A parsed page; fails on tags that do not match."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("document", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root], f"not closed: {[item.tag for item in self._open]}"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self._open[-1].children.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"</{tag}> closes <{self._open[-1].tag}>"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].text += data

    def find(self, tag: str) -> list[Element]:
        return self.root.find(tag)


def on_terminal(
    write: Callable[[Console], object], *, width: int = 80, encoding: str = "utf-8"
) -> str:
    """Return what is written on a terminal without colours."""
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    write(Console(file=stream, width=width, color_system=None, legacy_windows=False))
    stream.seek(0)
    return stream.read()
