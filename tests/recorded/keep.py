"""Keep sessions of repeated runs as compressed recordings.

    python -m tests.recorded.keep SESSIONS SCRIPT[:RUN,RUN]...

SESSIONS is a folder that `python -m benchmarks.diagnosis --rounds 2 --keep` wrote. Of each script
both rounds are kept, or the runs named, without what no rule reads, and with the folders of the
machine taken out.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path

from pipediag.session.model import Session
from pipediag.session.store import load_session
from tests.recorded.judging import SESSIONS, decisions, judged_anew

RUNS = ("round1", "round2")
STEPS = 40
"""Rows of steps that are kept, as an example; no rule reads them."""


def keep(folder: Path, name: str, run: str) -> None:
    """Write one recording, and check that it is judged as the session was.

    Raises:
        ValueError: what was left out changes a decision.
    """
    whole = load_session(folder / name / run / "session.json")
    text = whole.model_dump_json()
    for path, stands_for in _folders(whole).items():
        text = text.replace(path, stands_for)
    thin = json.loads(text)
    thin["step_rows"] = thin["step_rows"][:STEPS]
    thin["host_samples"] = []
    recording = Session.model_validate(thin)
    if decisions(judged_anew(recording)) != decisions(judged_anew(whole)):
        raise ValueError(f"{name}, {run}: what was left out changes a decision")
    SESSIONS.mkdir(exist_ok=True)
    packed = gzip.compress(json.dumps(thin, separators=(",", ":")).encode(), mtime=0)
    (SESSIONS / f"{name}-{run}.json.gz").write_bytes(packed)


def _folders(session: Session) -> dict[str, str]:
    """Return folders of this machine with what is written in their place."""
    found = {str(Path(sys.prefix).resolve()): "/environment"}
    for folder in sys.path:
        if folder.endswith("site-packages"):
            found[folder] = "/environment/site-packages"
    if session.script.directory is not None:
        found[session.script.directory] = "/project"
    return dict(sorted(found.items(), key=lambda item: -len(item[0])))


def main() -> None:
    """Keep the recordings of the scripts that are named."""
    folder, *names = sys.argv[1:]
    for name in names:
        script, _, runs = name.partition(":")
        for run in runs.split(",") if runs else RUNS:
            keep(Path(folder), script, run)


if __name__ == "__main__":
    main()
