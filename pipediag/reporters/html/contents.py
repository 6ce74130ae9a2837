"""The contents of the page, from the headings that its sections have."""

from __future__ import annotations

import re
from dataclasses import dataclass

_HEADING = re.compile(r'<h2 id="([a-z-]+-title)">([^<]+)</h2>')
"""As our templates write those of sections; within a session's text no `<` is left."""


_SHORT = {
    "ledger-title": "Run",
    "breakdown-title": "Step",
    "pipeline-title": "Pipeline",
    "trials-title": "Tried",
    "steps-title": "Steps",
    "checks-title": "Checks",
    "devices-title": "Devices",
    "host-title": "Host",
    "run-title": "Loops and machine",
}
"""What a heading is called where there is one line for all of them."""


@dataclass(frozen=True)
class Entry:
    id: str
    title: str
    """HTML."""


def of_page(html: str) -> list[Entry]:
    """The headings of sections in a rendered page, in their order."""
    return [Entry(name, _SHORT.get(name, title)) for name, title in _HEADING.findall(html)]
