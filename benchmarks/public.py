"""How often pipediag is right on scripts that nobody here wrote.

    python -m benchmarks.public --mirrors DIR [--packages DIR] [--probe] [--table FILE] [NAME...]

Takes the scripts of public_scripts/table.toml out of mirrors of their repositories, makes each one
run offline in a folder of its own, and compares `pipediag analyze` with what probes found that do
not use it. What was confirmed is written into the script by `pipediag fix`, and both versions then
run natively in turn. `--probe` runs the probes instead and prints what they find. NAME is a script
or a group: `slow` has those that were chosen because one sees by reading why they are slow.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import click

from benchmarks.public_scripts.judging import (
    Applied,
    Outcome,
    judged,
    line,
    markdown,
    totals,
)
from benchmarks.public_scripts.scripts import (
    PublicScript,
    SourceError,
    environment,
    made,
    probed,
    public_scripts,
)
from benchmarks.runs import machine_of
from pipediag.errors import PipediagError
from pipediag.runner.native_runs import obtained, of_script, promised, promised_of_whole
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import load_session

LIMIT_S = 150.0
"""For one script under `analyze`, its trials among it."""
EXIT_S = 60.0
NATIVE_LIMIT_S = 300.0
REPORT, RECORD = "report", "outcome.json"


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option(
    "--mirrors",
    required=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Git directories, DIR/owner+name/repo or DIR/owner/name.",
)
@click.option(
    "--packages",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Where `pip install --target DIR --group public-scripts` put what the scripts import.",
)
@click.option("--budget", default=30.0, show_default=True, help="Seconds of trials.")
@click.option(
    "--rounds",
    type=click.IntRange(min=0),
    default=3,
    show_default=True,
    help="Native runs of what was confirmed, each with and without; below 2: none.",
)
@click.option("--probe", is_flag=True, help="Find the truth instead, without pipediag.")
@click.option("--seconds", default=6.0, show_default=True, help="Seconds of steps a probe times.")
@click.option("--modes", default="written,repeated,half,alone,whole", show_default=True)
@click.option("--keep", type=click.Path(path_type=Path), help="Keep scripts and reports here.")
@click.option("--judge", is_flag=True, help="Judge what an earlier --keep left there again.")
@click.option("--noisy", is_flag=True, help="Say in the table that other work ran beside.")
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
@click.argument("names", nargs=-1)
def main(
    mirrors: Path,
    packages: Path | None,
    budget: float,
    rounds: int,
    probe: bool,
    seconds: float,
    modes: str,
    keep: Path | None,
    judge: bool,
    noisy: bool,
    table: Path | None,
    names: tuple[str, ...],
) -> None:
    """Run the scripts, print a line each, and the totals."""
    try:
        chosen = public_scripts(names)
    except SourceError as error:
        raise click.UsageError(str(error)) from error
    outcomes: list[Outcome] = []
    machine = ""
    with tempfile.TemporaryDirectory(prefix="pipediag-public-") as temporary:
        place = (keep or Path(temporary)).resolve()
        place.mkdir(parents=True, exist_ok=True)
        work = Work(mirrors.resolve(), packages and packages.resolve(), place)
        for script in chosen:
            if probe:
                found = work.truth(script, seconds, modes.split(","))
                click.echo("\n    ".join([f"{script.name}:", *found]))
                continue
            outcome, where = work.kept(script) if judge else work.outcome(script, budget, rounds)
            outcomes.append(outcome)
            machine = where or machine
            click.echo(line(outcome))
    if probe:
        return
    click.echo(totals(outcomes))
    if table is not None:
        table.write_text(markdown(outcomes, machine, not noisy), encoding="utf-8")
    sys.exit(not all(o.verdict_right and o.advice_right for o in outcomes))


class Work:
    """Scripts below one folder."""

    def __init__(self, mirrors: Path, packages: Path | None, place: Path) -> None:
        self._mirrors, self._packages, self._place = mirrors, packages, place

    def outcome(self, script: PublicScript, budget_s: float, rounds: int) -> tuple[Outcome, str]:
        """Run pipediag on the script; return the outcome, and the machine in words."""
        began = time.monotonic()
        try:
            path = self._made(script)
            session = self._analyze(script, path, budget_s)
            applied = self._applied(script, path, session, rounds)
        except (SourceError, PipediagError, subprocess.TimeoutExpired) as error:
            return Outcome(script, time.monotonic() - began, error=str(error)), ""
        seconds = time.monotonic() - began
        record = {"seconds": seconds, "applied": applied and applied.as_record()}
        (path.parent / RECORD).write_text(json.dumps(record), encoding="utf-8")
        return judged(script, session, applied, seconds), machine_of(session.environment)

    def kept(self, script: PublicScript) -> tuple[Outcome, str]:
        """Return the outcome of an earlier run, judged again."""
        folder = self._place / script.name
        if not (folder / RECORD).exists():
            return Outcome(script, 0.0, error="no run of it was kept"), ""
        record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
        session = load_session(folder / REPORT)
        applied = record["applied"] and Applied.from_record(record["applied"])
        return judged(script, session, applied, record["seconds"]), machine_of(session.environment)

    def truth(self, script: PublicScript, seconds: float, modes: Sequence[str]) -> list[str]:
        """Return what the probes measure."""
        try:
            return probed(script, self._made(script), self._packages, seconds, modes)
        except SourceError as error:
            return [str(error)]

    def _made(self, script: PublicScript) -> Path:
        folder = self._place / script.name
        shutil.rmtree(folder, ignore_errors=True)
        return made(script, self._mirrors, folder)

    def _analyze(self, script: PublicScript, path: Path, budget_s: float) -> Session:
        output = path.parent / REPORT
        words = ["analyze", "--budget", f"{budget_s:g}", "--timeout", f"{LIMIT_S + budget_s:g}"]
        ended = self._pipediag(
            script, path, [*words, "-o", str(output), path.name], LIMIT_S + budget_s
        )
        if not (output / SESSION_FILE).exists():
            raise SourceError(f"exit status {ended.returncode}: {ended.stderr[-300:]}")
        (output / "terminal.txt").write_text(ended.stderr, encoding="utf-8")
        return load_session(output)

    def _applied(
        self, script: PublicScript, path: Path, session: Session, rounds: int
    ) -> Applied | None:
        patch = session.patch
        if patch is None or rounds < 2:
            return None
        if patch.diff is None:
            return Applied((), None, None, "none of it can be written by a patch")
        original = path.with_name(f"{path.stem}_original.py")
        shutil.copy(path, original)
        ended = self._pipediag(script, path, ["fix", REPORT, "--apply"], EXIT_S)
        promise = promised(session)
        if ended.returncode != 0:
            return Applied(tuple(patch.edits), promise, None, ended.stderr[-200:])
        with contextlib.chdir(path.parent):
            try:
                found = obtained(
                    (of_script(original), of_script(path)),
                    rounds,
                    env=environment(script, path.parent, self._packages),
                    timeout_s=NATIVE_LIMIT_S,
                )
            except PipediagError as error:
                return Applied(tuple(patch.edits), promise, None, str(error))
        promise = promised_of_whole(session, found.script_s)
        return Applied(tuple(patch.edits), promise, found.gain)

    def _pipediag(
        self, script: PublicScript, path: Path, words: Sequence[str], limit_s: float
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pipediag", *words],
            cwd=path.parent,
            env={**environment(script, path.parent, self._packages), "NO_COLOR": "1"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=limit_s + EXIT_S,
            check=False,
        )


if __name__ == "__main__":
    main()
