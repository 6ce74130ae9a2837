"""Lines of a GitHub Actions log: commands of ours, and text that the runner takes for none."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pipediag.encoding.visible import clipped, visible

LONGEST_MESSAGE = 4_000
"""Characters of one annotation: more than its box shows."""

_COMMAND = re.compile(r"\A:(?=:)|(?<=#)#(?=(?:vso|teamcity)?\[)", re.IGNORECASE)
"""`::name` at the start of a line; `##[name]`, the older form, anywhere in it; and the same of
Azure Pipelines and TeamCity."""


def inert(line: str) -> str:
    r"""A line that no CI runner takes for a command: `\x3a:error::x` for `::error::x`."""
    blank = line[: len(line) - len(line.lstrip())]
    return blank + _COMMAND.sub(lambda found: f"\\x{ord(found[0]):02x}", line[len(blank) :])


def command(name: str, properties: Mapping[str, str], message: str) -> str:
    """A workflow command, such as an `error` with a `file` and a `line`, as one line."""
    written = ",".join(f"{key}={_property(value)}" for key, value in properties.items())
    return f"::{name} {written}::{_data(message)}"


def _data(text: str) -> str:
    shown = clipped(text, LONGEST_MESSAGE).replace("\t", " ").replace("%", "%25")
    return inert(visible(shown.replace("\r", "%0D").replace("\n", "%0A")))


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
