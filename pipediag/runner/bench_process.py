"""The process that times tables: started, waited for, and gone when its time is up or we are."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from pipediag.interrupts import ends_with_parent
from pipediag.runner.interpreter_flags import interpreter_flags
from pipediag.runner.signals import wait_for
from pipediag.session.table_bench import BenchPlan
from pipediag.trials.way_times import MORE_TIME, MORE_TIME_OF_BOTH

BENCH = Path(__file__).parents[1] / "table_bench" / "start.py"
START_S = 120.0
"""How long TensorFlow may take to start, and a last round to end, before the process is killed."""
_LONGEST_REASON = 300
"""Characters of what a failed process said last."""


@dataclass(frozen=True)
class Ending:
    """How the process ended, as sentences for what it did not tell."""

    reason: str
    more_time: str = MORE_TIME
    """What gives it more."""


def run_bench(plan: BenchPlan, plan_file: Path) -> Ending:
    """Let the process do what it can in its time.

    Raises:
        OSError: it could not be started.
    """
    plan.write(plan_file)
    limit_s, more_time = _limit(plan)
    with subprocess.Popen(
        [sys.executable, *interpreter_flags(sys.orig_argv), str(BENCH), str(plan_file)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=_environment(plan),
        preexec_fn=ends_with_parent(),  # noqa: PLW1509 - it takes no lock
    ) as process:
        try:
            said = wait_for(process, limit_s)
        except subprocess.TimeoutExpired:
            reason = f"The process that times tables had not ended after {limit_s:.0f} s."
            return Ending(f"{reason} {more_time}", more_time)
        except KeyboardInterrupt:
            return Ending("Ctrl-C ended the timing before its turn came.")
        finally:
            process.kill()
    return Ending(_how_it_ended(process.returncode, said, more_time), more_time)


def _environment(plan: BenchPlan) -> dict[str, str]:
    """Ours, but that others who train on this machine keep their GPUs' memory."""
    # As it is, TensorFlow takes nearly all memory of every GPU that it sees.
    own = {"KERAS_BACKEND": "tensorflow", "TF_FORCE_GPU_ALLOW_GROWTH": "true"}
    if all("CPU" in (table.device or "") for table in plan.tables):
        own["CUDA_VISIBLE_DEVICES"] = "-1"
    return {**os.environ, **own}


def _limit(plan: BenchPlan) -> tuple[float, str]:
    """Seconds until it is killed, and what gives it more of them."""
    own_s = plan.budget_s + START_S
    left_s = own_s if plan.ends_at is None else plan.ends_at - time.monotonic()
    if left_s < own_s:
        return max(0.0, left_s), MORE_TIME_OF_BOTH
    return own_s, MORE_TIME


def _how_it_ended(status: int, said: bytes, more_time: str) -> str:
    if status == 0:
        return f"The time was up before its turn came. {more_time}"
    if status < 0:
        return (
            f"The process that times tables was killed by signal {-status}, as where memory ran "
            "out."
        )
    last = said.decode(errors="replace").strip().rpartition("\n")[2][:_LONGEST_REASON]
    return f"The process that times tables ended with {status}: {last}"
