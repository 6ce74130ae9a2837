"""What readers of JUnit XML agree on, as far as pipediag writes it.

There is no standard. These are the elements that Jenkins' schema for it (junit-10.xsd) has, with
the attributes that it knows of each; a file that has others is refused by who checks against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from xml.etree import ElementTree as ET


@dataclass(frozen=True)
class Element:
    """One kind of them."""

    required: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    children: frozenset[str] = frozenset()
    text: bool = False


def names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SAID = Element(optional=names("type message"), text=True)
ELEMENTS = {
    "testsuites": Element(
        optional=names("name tests failures errors"), children=names("testsuite")
    ),
    "testsuite": Element(
        required=names("name tests failures errors"),
        optional=names("skipped"),
        children=names("testcase"),
    ),
    "testcase": Element(
        required=names("name"),
        optional=names("classname"),
        children=names("failure error skipped system-out"),
    ),
    "failure": _SAID,
    "error": _SAID,
    "skipped": _SAID,
    "system-out": Element(text=True),
}
_COUNTED = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}


def problems(root: ET.Element) -> list[str]:
    """What is not as it says; nothing where all is."""
    found = [] if root.tag == "testsuites" else [f"begins with {root.tag}"]
    return [*found, *(problem for element in root.iter() for problem in _of(element))]


def _of(element: ET.Element) -> Iterator[str]:
    kind = ELEMENTS.get(element.tag)
    if kind is None:
        yield f"there is no element {element.tag}"
        return
    given = set(element.keys())
    yield from (f"{element.tag} lacks {name}" for name in kind.required - given)
    yield from (f"{element.tag} has {name}" for name in given - kind.required - kind.optional)
    strange = {child.tag for child in element} - kind.children
    yield from (f"{element.tag} holds {name}" for name in strange)
    between = [element.text, *(child.tail for child in element)]
    if not kind.text and any(text and text.strip() for text in between):
        yield f"{element.tag} holds text"
    for name, tag in _COUNTED.items():
        if name in given and element.get(name) != str(sum(1 for _ in element.iter(tag))):
            yield f"{element.tag} counts its {name} wrongly"
