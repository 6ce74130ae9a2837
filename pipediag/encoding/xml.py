"""XML in which text stays text: it ends no element, begins no entity and gives a log no command."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

from pipediag.encoding.visible import clipped, visible_line, visible_start

LONGEST_TEXT = 4_000
"""Characters of one attribute or element."""

_NOT_IN_XML = re.compile("[\ufffe\uffff]")
"""What XML 1.0 forbids and `visible` lets stand."""


def text(value: str) -> str:
    """One line of characters that XML can hold and that are seen; markup is left to `document`."""
    plain = visible_line(value, LONGEST_TEXT)
    return clipped(_NOT_IN_XML.sub(lambda c: f"\\u{ord(c[0]):04x}", plain), LONGEST_TEXT)


def code(line: str) -> str:
    """A line of code with its indent, in such characters."""
    plain = visible_start(line, LONGEST_TEXT)
    return clipped(_NOT_IN_XML.sub(lambda c: f"\\u{ord(c[0]):04x}", plain), LONGEST_TEXT)


def document(root: ET.Element) -> str:
    """The tree as a document, indented; `##[`, a command to some CI runners, is `#&#35;[` in it."""
    ET.indent(root)
    body = ET.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'.replace("##", "#&#35;")
