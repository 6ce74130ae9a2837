"""How often the answer changes between runs of one script under unequal circumstances.

    python -m benchmarks.repeat [--budget S] [--keep DIR] [NAME...]
    python -m benchmarks.repeat --sessions DIR [NAME...]

Analyses each script five times: once with a cold page cache and without compiled Python files,
once beside a process that keeps one core busy, and three times with nothing beside it. Prints, for
each script, what differs in bottleneck, culprit line, first advice, and in what is said of causes:
titles of failing findings and the verdict's sentence, both without their figures. A cause that the
script's expectation rules out is a false one, in whichever run. The exit status is 1 if quiet runs
differ or a false cause was stated.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import click

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.diagnosis import labelled
from benchmarks.runs import RunFailedError, analyze
from pipediag.facts.order import to_act_on
from pipediag.session.files import SESSION_FILE
from pipediag.session.model import Session
from pipediag.session.store import load_session, save_session
from tests.samples.expectation import Expectation, false_confirmations

SCRIPTS = (
    "batch_callback",
    "blocking_numpy_function",
    "cnn_fit",
    "eager_fit",
    "generator_waits",
    "host_overhead",
    "large_table_adam",
    "loop_healthy",
    "many_files",
    "misplaced_cache",
    "missing_cache",
    "per_element_map",
    "pydataset_python_rows",
    "python_generator_fit",
    "python_map_lock",
    "retracing_float",
    "shuffled_whole_data",
    "slow_embedding_basic",
    "text_layer_in_model",
    "validation_each_epoch",
    "word2vec_fit",
)
"""The demo and twenty others: input, computing, launching operations, parts of the run."""

RUNS = ("cold", "loaded", "quiet1", "quiet2", "quiet3")
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_BUSY = "import os; parent = os.getppid()\nwhile os.getppid() == parent: pass"
"""Ends with this process, however that ends."""
_FIGURES = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True)
class Answer:
    """The part of a session that a reader acts on, without its figures."""

    bottleneck: str
    culprit: str
    first_advice: str
    causes: frozenset[str]

    def differences(self, other: Answer) -> list[str]:
        """Name the parts in which two answers differ, with both values."""
        found = [
            f"{name}: {getattr(self, name)} / {getattr(other, name)}"
            for name in ("bottleneck", "culprit", "first_advice")
            if getattr(self, name) != getattr(other, name)
        ]
        return found + [f"cause: {text}" for text in sorted(self.causes ^ other.causes)]


def answer(session: Session) -> Answer:
    """Return the answer that a session gives."""
    verdict = session.verdict
    place = f"{Path(verdict.file).name}:{verdict.line}" if verdict.file else "none"
    first = next((one.rule for one in session.findings if to_act_on(one)), "nothing")
    failed = [one.title for one in session.findings if one.status == "fail"]
    causes = frozenset(_FIGURES.sub("#", text) for text in [*failed, verdict.summary])
    return Answer(verdict.bottleneck, place, first, causes)


def false_causes(expected: Expectation, session: Session) -> list[str]:
    """Return the rules that failed or were confirmed although the script's truth excludes them."""
    excluded = {*expected.must_not_fail, *expected.must_be_silent}
    failed = {one.rule for one in session.findings if one.status == "fail"}
    return sorted({*(failed & excluded), *false_confirmations(expected, session)})


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--budget", default=20.0, show_default=True, help="Seconds of trials; 0: none.")
@click.option("--keep", type=click.Path(path_type=Path), help="Keep each run's session here.")
@click.option(
    "--sessions",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Compare the sessions that --keep left here.",
)
@click.argument("names", nargs=-1)
def main(
    budget: float,
    keep: Path | None,
    sessions: Path | None,
    names: tuple[str, ...],
) -> None:
    """Run the scripts, print what changed between the runs of each, and the totals."""
    rows: list[str] = []
    quiet_changed = false = 0
    for expected in labelled(names or SCRIPTS):
        found = (
            _kept(sessions / expected.name)
            if sessions is not None
            else _measured(expected, budget, keep and keep / expected.name)
        )
        changed, wrong = _compare(expected, found)
        quiet_changed += bool(changed["quiet"])
        false += len(wrong)
        rows.append(
            f"| {expected.name} | {len(found)} | {'; '.join(changed['quiet']) or '-'} | "
            f"{'; '.join(changed['any']) or '-'} | {'; '.join(wrong) or '-'} |"
        )
        click.echo(rows[-1])
    total = f"{quiet_changed} of {len(rows)} scripts changed in quiet runs; {false} false causes."
    click.echo(total)
    sys.exit(bool(quiet_changed or false))


def _compare(
    expected: Expectation, found: Mapping[str, Session]
) -> tuple[dict[str, list[str]], list[str]]:
    answers = {run: answer(session) for run, session in found.items()}
    quiet = [one for run, one in answers.items() if run.startswith("quiet")]
    changed = {"quiet": _changes(quiet), "any": _changes(list(answers.values()))}
    wrong = [
        f"{rule} ({run})"
        for run, session in found.items()
        for rule in false_causes(expected, session)
    ]
    return changed, wrong


def _changes(answers: Sequence[Answer]) -> list[str]:
    """Return each difference from the first answer once."""
    found = (text for one in answers[1:] for text in answers[0].differences(one))
    return list(dict.fromkeys(found))


def _kept(folder: Path) -> dict[str, Session]:
    files = {run: folder / run / SESSION_FILE for run in RUNS}
    return {run: load_session(file) for run, file in files.items() if file.exists()}


def _measured(expected: Expectation, budget_s: float, keep: Path | None) -> dict[str, Session]:
    found: dict[str, Session] = {}
    for run in RUNS:
        with tempfile.TemporaryDirectory(prefix="pipediag-repeat-") as directory:
            try:
                with _circumstances(run, directory) as variables:
                    found[run] = analyze(
                        expected.script,
                        Path(directory) / "report",
                        budget_s,
                        exit_status=expected.exit_status,
                        variables=variables,
                    )
            except RunFailedError as error:
                click.echo(f"{expected.name}, {run}: {error}", err=True)
        if keep is not None and run in found:
            (keep / run).mkdir(parents=True, exist_ok=True)
            save_session(found[run], keep / run)
    return found


@contextmanager
def _circumstances(run: str, directory: str) -> Iterator[dict[str, str]]:
    """Make the run cold, loaded or quiet; yields environment variables for it."""
    if run == "cold":
        os.sync()
        with suppress(OSError):  # Only root may; without it, only compiled Python files are cold.
            _DROP_CACHES.write_text("3")
        yield {"PYTHONPYCACHEPREFIX": str(Path(directory) / "pycache")}
        return
    if run == "loaded":
        busy = subprocess.Popen([sys.executable, "-c", _BUSY])
        try:
            yield {}
        finally:
            busy.kill()
            busy.wait()
        return
    yield {}


if __name__ == "__main__":
    main()
