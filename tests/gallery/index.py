"""The table of the gallery: what each report is of, what it says, and how large its page is."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pipediag.encoding.markdown import row, text
from pipediag.reporters.words.headline import headline
from pipediag.session.model import Session
from tests.gallery.pictures import DRESSES
from tests.gallery.samples import EXHIBITS, PICTURED

HEAD = """# Gallery

Reports of real runs of [the samples](../../sample_pipelines/README.md), as `make gallery` writes
them: eight pages, each one file that works offline. GitHub shows their source; download one, or
look at a checkout, to see it as a page. Times are those of one small machine and compare with no
other.

"""


def index(folder: Path, sessions: Mapping[str, Session]) -> str:
    """The README of the gallery's folder; pages and pictures are there already."""
    lines = [
        row(["Report", "Shows", "Says", "Tried", "Size"]),
        "|---|---|---|---|---|",
        *(
            _row(folder, exhibit.sample, exhibit.shows, sessions[exhibit.sample])
            for exhibit in EXHIBITS
            if exhibit.sample in sessions
        ),
    ]
    return HEAD + "\n".join(lines) + "\n" + _pictures(folder)


def _row(folder: Path, sample: str, shows: str, session: Session) -> str:
    tried = headline(session)
    said = [shows, session.verdict.summary, str(tried) if tried else "Nothing was tried."]
    size = f"{_kilobytes(folder / f'{sample}.html')}"
    cells = " | ".join(map(text, said))
    return f"| [`{sample}`]({sample}.html) | {cells} | {size} |"


def _pictures(folder: Path) -> str:
    shown = [dress for dress in DRESSES if (folder / f"{dress.name}.png").exists()]
    if not shown:
        return ""
    sizes = ", ".join(f"{one.name} {_kilobytes(folder / f'{one.name}.png')}" for one in shown)
    pictures = "\n".join(
        f"![The first screen of `{PICTURED}`, {one.name}]({one.name}.png)\n" for one in shown
    )
    return f"\nThe first screen of `{PICTURED}` ({sizes}):\n\n{pictures}"


def _kilobytes(file: Path) -> str:
    return f"{round(file.stat().st_size / 1000)} kB"
