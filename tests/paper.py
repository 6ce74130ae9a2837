"""A page as it is printed, read back from the PDF."""

from __future__ import annotations

import base64
from itertools import accumulate
from typing import Any

_OPENERS = """
return [...document.querySelectorAll("h1, h2, h3, .lead, caption, thead tr")]
  .filter(one => one.getClientRects().length).map(one => one.innerText);
"""
_A4_INCHES = {"paperWidth": 8.27, "paperHeight": 11.69}
_LETTER_INCHES = {"paperWidth": 8.5, "paperHeight": 11.0}
PAPERS = {"A4": _A4_INCHES, "Letter": _LETTER_INCHES}


def printed(driver: Any, paper: str) -> list[list[str]]:
    """The lines of each sheet."""
    import pypdfium2

    options = {"printBackground": True, **PAPERS[paper]}
    data = base64.b64decode(driver.execute_cdp_cmd("Page.printToPDF", options)["data"])
    document = pypdfium2.PdfDocument(data)
    try:
        texts = [sheet.get_textpage().get_text_range() for sheet in document]
    finally:
        document.close()
    return [[line for line in text.splitlines() if line.strip()] for text in texts]


def stranded(driver: Any, sheets: list[list[str]]) -> list[str]:
    """Headings, and what leads in a section or a table, at whose foot the sheet ends."""
    openers = {_bare(text) for text in driver.execute_script(_OPENERS)} - {""}
    ends = [
        (number, line)
        for number, lines in enumerate(sheets, 1)
        for line in accumulate(reversed(lines), lambda below, above: above + below)
        if len(line) < 400
    ]
    return [f"sheet {number}: {line}" for number, line in ends if _bare(line) in openers]


def _bare(text: str) -> str:
    return "".join(text.split())
