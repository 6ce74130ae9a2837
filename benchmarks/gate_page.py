"""The page with the results: a section of it is replaced, and the text around it stays."""

from __future__ import annotations

from pathlib import Path


def replace_section(page: Path, name: str, content: str) -> None:
    """Puts it between the two comments that name the section.

    Raises:
        ValueError: the page has no such section.
    """
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->\n"
    before, found, rest = page.read_text(encoding="utf-8").partition(begin)
    _, ended, after = rest.partition(end)
    if not found or not ended:
        raise ValueError(
            f"{page} has no section {name}: add the lines {begin.strip()} and {end.strip()}."
        )
    page.write_text(f"{before}{begin}{content}{end}{after}", encoding="utf-8")
