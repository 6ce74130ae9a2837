"""`python -m tests.session.golden`: the golden file of the present schema version, by a real run.

It is made once: where it is there, only the shape is written anew, and that only where nothing in
it asks for a new version.
"""

from __future__ import annotations

import gzip
import subprocess
import sys
import tempfile
from pathlib import Path

from pipediag.session.model import SCHEMA_VERSION
from tests.session.golden.files import SCRIPT, SUMS, session_of, shape_of, sums
from tests.session.golden.neutral import of_no_machine
from tests.session.shape import from_text, rises, shape, to_text

ARGUMENTS = ("--steps", "30", "--profile-steps", "8", "--budget", "12")


def main() -> None:
    freeze_shape()
    if not session_of().exists():
        session_of().write_bytes(gzip.compress(recorded().encode(), mtime=0))
        SUMS.write_text(sums(), encoding="utf-8")
        print(f"wrote {session_of().name}")


def freeze_shape() -> None:
    file, now = shape_of(), shape()
    if file.exists() and (reasons := rises(from_text(file.read_text(encoding="utf-8")), now)):
        sys.exit(f"Version {SCHEMA_VERSION} must rise:\n" + "\n".join(reasons))
    file.write_text(to_text(now), encoding="utf-8")


def recorded() -> str:
    """The session of a run of `train.py`, without what names this machine."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder, SCRIPT.name)
        script.write_text(SCRIPT.read_text(encoding="utf-8"), encoding="utf-8")
        command = [sys.executable, "-m", "pipediag", "analyze", *ARGUMENTS, "-o", "out"]
        subprocess.run([*command, script.name], cwd=folder, check=True, stdout=sys.stderr)
        return of_no_machine(Path(folder, "out/session.json").read_text("utf-8"), folder)


if __name__ == "__main__":
    main()
