"""How many confirmed edits become a patch that applies to the script that was measured.

    python -m benchmarks.patches --sessions DIR [--table FILE]

DIR is what `python -m benchmarks.diagnosis --keep DIR` left, or any folder with sessions of samples
and of `scripts/`. Each edit that trials confirmed there is made a patch anew by today's code, from
the script's source, which has to be what was measured and to compile afterwards. Not a timing: what
the patched script gains, `pipediag fix --verify` and `python -m benchmarks.applied` measure.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePath

import click

from pipediag.patching.making import make_patch
from pipediag.patching.refusal import NotPatchableError
from pipediag.session.edits import Edit
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import load_session

HERE = Path(__file__).parent
FOLDERS = (HERE.parent / "sample_pipelines", HERE / "scripts", HERE / "run_scripts")
GOAL = 0.8
"""Of the confirmed edits."""


@dataclass(frozen=True)
class Outcome:
    """One confirmed edit of a script."""

    script: str
    rule: str
    reason: str | None
    """Why it is code to paste; None where it is a patch that applies."""


def confirmed(session: Session) -> Iterator[tuple[str, Edit]]:
    """Edits that a trial confirmed, each with its rule."""
    for finding in session.findings:
        if finding.edit is not None and finding.trial.state == "confirmed":
            yield finding.rule, finding.edit


def outcomes(session: Session, source: bytes) -> Iterator[Outcome]:
    """Of each confirmed edit of a session, with the script that it measured."""
    script = PurePath(session.script.path)

    def read(path: str) -> bytes:
        if PurePath(path).name != script.name:
            raise NotPatchableError(f"It stands in {PurePath(path).name}.")
        return source

    for rule, edit in confirmed(session):
        patch, changed = make_patch(session, [edit], read)
        for path, content in changed.items():
            compile(content, path, "exec")
        reason = patch.left_out[0].reason if patch.left_out else None
        yield Outcome(script.stem, rule, reason or (None if changed else "Nothing changes."))


def measured_source(session: Session) -> bytes | None:
    """The script of a session; None where it is none of ours, or has been edited since.

    What it was is known from the patches that the session holds.
    """
    name = PurePath(session.script.path).name
    known = {
        file.sha256
        for patch in [session.patch, *(finding.patch for finding in session.findings)]
        if patch is not None
        for file in patch.files
    }
    found = [folder / name for folder in FOLDERS if (folder / name).exists()]
    texts = [file.read_bytes() for file in found]
    same = [text for text in texts if hashlib.sha256(text).hexdigest() in known]
    return (same or ([] if known else texts) or [None])[0]


def judged(files: Iterable[Path]) -> tuple[list[Outcome], list[str]]:
    """The last outcome of each rule of a script, and the scripts that have been edited since."""
    last: dict[tuple[str, str], Outcome] = {}
    edited: set[str] = set()
    for session in sorted(map(load_session, files), key=lambda one: one.created_at):
        if not any(confirmed(session)):
            continue
        source = measured_source(session)
        if source is None:
            edited.add(PurePath(session.script.path).stem)
            continue
        last |= {(one.script, one.rule): one for one in outcomes(session, source)}
    return sorted(last.values(), key=lambda one: (one.script, one.rule)), sorted(edited)


def table(found: list[Outcome], edited: list[str]) -> str:
    """The share, and of each edit that is none of the patches the reason, in Markdown."""
    patches = [one for one in found if one.reason is None]
    share = 100.0 * len(patches) / len(found)
    lines = [
        f"{len(patches)} of {len(found)} confirmed edits ({share:.0f} %) of "
        f"{len({one.script for one in found})} scripts become a patch that applies and compiles; "
        f"the goal is {100 * GOAL:.0f} %. The others come as code to paste, with the reason:",
        "",
        "| script | rule | why it is no patch |",
        "|---|---|---|",
        *(f"| `{one.script}` | `{one.rule}` | {one.reason} |" for one in found if one.reason),
    ]
    if edited:
        lines += ["", f"Edited since they were measured, and left out: {', '.join(edited)}."]
    return "\n".join(lines) + "\n"


@click.command(help=__doc__)
@click.option(
    "--sessions",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Below it, each session.json is read.",
)
@click.option("--table", "table_file", type=click.Path(path_type=Path), help="Write it here.")
def main(sessions: Path, table_file: Path | None) -> None:
    """Prints the table; ends with 1 where fewer than the goal are patches."""
    found, edited = judged(sessions.rglob(SESSION_FILE))
    if not found:
        sys.exit(f"No session below {sessions} has a confirmed edit of a script of ours.")
    text = table(found, edited)
    click.echo(text, nl=False)
    if table_file is not None:
        table_file.write_text(text, encoding="utf-8")
    sys.exit(sum(one.reason is None for one in found) < GOAL * len(found))


if __name__ == "__main__":
    main()
