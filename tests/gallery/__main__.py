"""`python -m tests.gallery`: the reports of docs/gallery, of real runs of the samples.

    python -m tests.gallery            # runs each sample under `pipediag analyze`
    python -m tests.gallery --recorded # makes the pages again from the sessions of the last runs

Sessions are kept in reports/gallery, which git ignores, and in the pages. Runs need a quiet
machine.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from pipediag.reporters.html.page import render
from pipediag.session.model import Session
from tests.gallery.index import index
from tests.gallery.pictures import take_pictures
from tests.gallery.recorded import GALLERY, RECORDED, ROOT, last_run
from tests.gallery.samples import EXHIBITS, PICTURED
from tests.session.golden.neutral import of_no_machine

SAMPLES = ROOT / "sample_pipelines"
BUDGET_S = 40
"""For trials: enough to decide the plain cases, and short enough to be made again."""
_TIMEOUT_S = 900
_MARKER = re.compile(r"  # pipediag: \w+")
"""What tells the tests of the samples which line is meant, and a reader nothing."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.gallery")
    parser.add_argument("--recorded", action="store_true", help="render the last runs again")
    parser.add_argument("--only", metavar="SAMPLE", action="append", help="run these samples alone")
    options = parser.parse_args()
    for exhibit in EXHIBITS:
        if not options.recorded and (not options.only or exhibit.sample in options.only):
            record(exhibit.sample)
    write(GALLERY, {exhibit.sample: last_run(exhibit.sample) for exhibit in EXHIBITS})


def record(sample: str) -> None:
    """Runs a sample in a folder of its own; keeps the session without what names the machine."""
    print(f"{sample}: running", file=sys.stderr)
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, f"{sample}.py")
        script.write_text(_MARKER.sub("", (SAMPLES / script.name).read_text("utf-8")), "utf-8")
        command = [sys.executable, "-m", "pipediag", "analyze", "--budget", str(BUDGET_S)]
        subprocess.run(
            [*command, "-o", "out", script.name],
            cwd=folder,
            check=True,
            timeout=_TIMEOUT_S,
            stdout=subprocess.DEVNULL,
        )
        text = Path(folder, "out/session.json").read_text("utf-8")
        RECORDED.mkdir(parents=True, exist_ok=True)
        (RECORDED / f"{sample}.json").write_text(of_no_machine(text, folder), encoding="utf-8")


def write(folder: Path, sessions: dict[str, Session]) -> None:
    """The pages, the pictures of one of them, and the table that leads to them."""
    folder.mkdir(parents=True, exist_ok=True)
    for sample, session in sessions.items():
        (folder / f"{sample}.html").write_text(render(session), encoding="utf-8")
    if PICTURED in sessions:
        take_pictures(folder / f"{PICTURED}.html", folder)
    (folder / "README.md").write_text(index(folder, sessions), encoding="utf-8")


if __name__ == "__main__":
    main()
