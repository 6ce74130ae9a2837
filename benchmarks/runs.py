"""Runs of `pipediag analyze` on labelled scripts, for benchmarks and for tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Container, Mapping, Sequence
from pathlib import Path

from pipediag.session.model import Session
from pipediag.session.store import load_session

WITHOUT_TRIALS_S = 120
EXIT_S = 150
"""Seconds for pipediag's own end after the script's time is up: trace and report."""


class RunFailedError(Exception):
    """`pipediag analyze` ended otherwise than it should; the message says how."""


def analyze(
    script: Path,
    output: Path,
    budget_s: float,
    *,
    exit_status: Container[int] = (0,),
    options: Sequence[str] = (),
    python: str = sys.executable,
    variables: Mapping[str, str] | None = None,
    directory: Path | None = None,
) -> Session:
    """Run `pipediag analyze` on one script, with `budget_s` for trials and, beside, its defaults.

    `options` are further ones of its own, `variables` are added to the environment; the script is
    run in `directory`.

    Raises:
        RunFailedError: an exit status that is not expected, or none in time.
    """
    timeout_s = WITHOUT_TRIALS_S + 2 * budget_s
    ours = ["--budget", f"{budget_s:g}", "--timeout", f"{timeout_s:g}", "--force", "-q", *options]
    command = [python, "-m", "pipediag", "analyze", *ours, "-o", str(output)]
    try:
        done = subprocess.run(
            [*command, str(script)],
            capture_output=True,
            text=True,
            timeout=timeout_s + EXIT_S,
            env={**os.environ, **(variables or {})},
            cwd=directory,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise RunFailedError(f"had not ended after {error.timeout:g} s") from error
    if done.returncode not in exit_status:
        raise RunFailedError(f"exit status {done.returncode}: {done.stderr[-2000:]}")
    return load_session(output)
