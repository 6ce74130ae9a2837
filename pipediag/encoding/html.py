"""Text of an HTML page, before markup in it is escaped."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from pipediag.encoding.visible import visible, visible_start

LONGEST_TEXT = 2_000
"""Characters of one text; arguments and framework messages can be endless."""


def shown(value: Any) -> Any:
    """What a template prints, as it prints it: for an environment's `finalize`.

    Characters that change the direction of writing, or that nobody sees, are spelled out, in markup
    of ours too, which may hold text that is escaped already.
    """
    if isinstance(value, Markup):
        return Markup(visible(value))
    return visible_start(value, LONGEST_TEXT) if isinstance(value, str) else value
