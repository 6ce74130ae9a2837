"""How often each sample is diagnosed as its expectation says.

    python -m benchmarks.samples --rounds 5 [NAME...]

Runs `pipediag analyze --budget 0` with its defaults on every sample, round by round, so that a
sample's runs lie far apart on a noisy machine. Prints each miss with what was found, and at the end
one line a sample. The exit status is 1 if any run missed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

import click

from pipediag.session.model import Session
from pipediag.session.store import load_session
from tests.samples.expectation import Expectation, all_expectations, discrepancies

WITHOUT_TRIALS_S = 120
EXIT_S = 180
"""For pipediag's own end after the script's time is up: reading the trace, writing the report."""


class RunFailedError(Exception):
    """`pipediag analyze` ended otherwise than it should; the message says how."""


def analyze(
    script: Path,
    output: Path,
    budget_s: float = 0,
    *,
    args: Sequence[str] = (),
    exit_status: Container[int] = (0,),
    options: Sequence[str] = (),
    variables: Mapping[str, str] | None = None,
) -> Session:
    """Run `pipediag analyze` on one script, with `budget_s` for trials and, beside, its defaults.

    `options` are further ones of its own, `variables` are added to the environment.

    Raises:
        RunFailedError: an exit status that is not expected, or none in time.
    """
    timeout_s = WITHOUT_TRIALS_S + 2 * budget_s
    ours = ["--budget", f"{budget_s:g}", "--timeout", f"{timeout_s:g}", "--force", "-q", *options]
    command = [sys.executable, "-m", "pipediag", "analyze", *ours, "-o", str(output)]
    try:
        done = subprocess.run(
            [*command, str(script), *args],
            capture_output=True,
            text=True,
            timeout=timeout_s + EXIT_S,
            env={**os.environ, **(variables or {})},
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunFailedError(f"had not ended after {error.timeout:g} s") from error
    if done.returncode not in exit_status:
        raise RunFailedError(f"exit status {done.returncode}: {done.stderr[-400:]}")
    return load_session(output)


def run_once(expected: Expectation, output: Path) -> list[str]:
    """Diagnose one sample; the sentences say where the session differs from the expectation."""
    try:
        session = analyze(expected.script, output, exit_status=expected.exit_status)
    except RunFailedError as error:
        return [str(error)]
    return discrepancies(expected, session)


def describe(output: Path) -> str:
    """The figures of a run, for a reader who looks for the reason of a miss."""
    session = load_session(output)
    wait = session.breakdown["input_wait"].percent if session.breakdown else None
    step = session.steps.median_ms if session.steps else None
    method = session.input_wait.method if session.input_wait else None
    return f"{session.verdict.bottleneck}: step {step} ms, input wait {wait} % by {method}"


@click.command()
@click.option("--rounds", default=5, show_default=True, help="Runs of each sample.")
@click.argument("names", nargs=-1)
def main(rounds: int, names: tuple[str, ...]) -> None:
    """Run the samples and count how often each is diagnosed as expected."""
    chosen = [e for e in all_expectations() if not names or e.name in names]
    hits = {expected.name: 0 for expected in chosen if not expected.missing_modules}
    with tempfile.TemporaryDirectory() as directory:
        for number in range(1, rounds + 1):
            for expected in chosen:
                if expected.missing_modules:
                    continue
                output = Path(directory) / expected.name
                began = time.monotonic()
                misses = run_once(expected, output)
                hits[expected.name] += not misses
                verdict = "miss" if misses else "ok"
                took = time.monotonic() - began
                click.echo(f"round {number} {verdict:4} {expected.name} ({took:.0f} s)")
                for miss in misses:
                    click.echo(f"    {miss}; {describe(output)}")
    for name, count in hits.items():
        click.echo(f"{count} of {rounds}  {name}")
    sys.exit(any(count < rounds for count in hits.values()))


if __name__ == "__main__":
    main()
