"""Characters that act or hide instead of being seen, spelled out."""

from __future__ import annotations

import re

_UNSEEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but for tab and newline; a C1 one can start a command
    "\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f"  # no width, ends of lines, direction of writing
    "\u3164\ud800-\udfff\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Variation selectors of the first plane are not among them: they belong to many emoji."""
_UNSEEN_CHARACTER = re.compile(f"[{_UNSEEN}]")
_SEEN_ASCII = bytes((*b"\t\n", *range(0x20, 0x7F)))
MOST_BLANK = 4
"""So many times as much of a text is looked at as is shown where blanks are taken out first: a text
of megabytes may stand beside each of thousands of findings."""
_STYLE = re.compile(r"\x1b\[[0-9;]*m")
_SURROGATE = re.compile("[\ud800-\udfff]")


def visible(text: str) -> str:
    r"""The text with `\x1b` where an escape character was, `\u202e` where the direction changed.

    Tabs and newlines are kept: what they do depends on the medium.
    """
    return _UNSEEN_CHARACTER.sub(_spelled, text) if _may_hide(text) else text


def without_styles(text: str) -> str:
    """The text without bold and colours, which messages of Keras have wherever they are shown."""
    return _STYLE.sub("", text)


def without_surrogates(text: str) -> str:
    r"""The text as UTF-8 can hold it: `\udcff` for a byte of a file name that is no UTF-8."""
    return _SURROGATE.sub(_spelled, text)


def escaped_unseen(text: str) -> str:
    r"""The same characters as JSON and JavaScript escape them within a string: `\u001b`."""
    return _UNSEEN_CHARACTER.sub(_as_utf_16, text) if _may_hide(text) else text


def clipped(text: str, most: int) -> str:
    """At most so many characters; an ellipsis stands for the rest."""
    return text if len(text) <= most else text[: most - 1] + "…"


def visible_start(text: str, most: int) -> str:
    """`visible`, at most so many characters; no more of the text is looked at."""
    return clipped(visible(text[: most + 1]), most)


def visible_line(text: str, most: int) -> str:
    """The same on one line, with one blank for all that stand together."""
    return visible_start(" ".join(clipped(text, MOST_BLANK * most).split()), most)


def _may_hide(text: str) -> bool:
    """Most texts are ASCII, some are megabytes: those are looked through twenty times as fast."""
    return not text.isascii() or bool(text.encode().translate(None, _SEEN_ASCII))


def _spelled(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _as_utf_16(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be", "surrogatepass")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
