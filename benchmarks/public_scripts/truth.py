"""Runs the probes of public scripts: what is true of them, as far as clocks can say it."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.public_scripts.scripts import PublicScript, environment

PROBE = Path(__file__).with_name("probe.py")
MODES = ("written", "repeated", "half", "alone", "whole")
LIMIT_S = 240.0


@dataclass(frozen=True)
class Probed:
    """What each mode measured, or why it did not."""

    found: dict[str, dict[str, Any]]
    errors: dict[str, str]

    def ms(self, mode: str) -> float | None:
        """Mean milliseconds of a step in that mode."""
        value = self.found.get(mode, {}).get("mean_ms")
        return None if value is None else float(value)

    @property
    def input_percent(self) -> float | None:
        """How much of a step a free input would save."""
        written, repeated = self.ms("written"), self.ms("repeated")
        return None if not (written and repeated) else 100 * (1 - repeated / written)

    @property
    def fixed_percent(self) -> float | None:
        """How much of a step with free input does not hang on the batch's size."""
        whole, half = self.ms("repeated"), self.ms("half")
        return None if not (whole and half) else 100 * (2 * half - whole) / whole

    def sentences(self) -> list[str]:
        """For the reader who fills in the table's truth."""
        steps = [f"{mode} {self.ms(mode):.2f} ms" for mode in MODES if self.ms(mode)]
        said = ["; ".join(steps)]
        if self.input_percent is not None:
            said.append(f"input {self.input_percent:.0f} % of a step")
        if self.fixed_percent is not None:
            said.append(f"fixed {self.fixed_percent:.0f} % of what is left")
        whole = self.found.get("whole")
        if whole:
            parts = [f"{name} {seconds:.1f}" for name, seconds in whole["spans"].items()]
            said.append(f"run {whole['total_s']:.1f} s: {', '.join(parts)}")
        return [*said, *(f"{mode}: {error}" for mode, error in self.errors.items())]


def probed(
    script: PublicScript,
    path: Path,
    packages: Path | None,
    seconds: float,
    modes: tuple[str, ...] = MODES,
) -> Probed:
    """Each mode in a process of its own."""
    result = Probed({}, {})
    variables = environment(script, path.parent, packages)
    variables["PUBLIC_PROBE"] = json.dumps(dict(script.probe))
    for mode in modes:
        written = path.parent / f"probe_{mode}.json"
        command = [sys.executable, str(PROBE), mode, str(seconds), str(written), str(path)]
        try:
            done = subprocess.run(
                command,
                cwd=path.parent,
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            result.errors[mode] = f"not through after {LIMIT_S:g} s"
            continue
        if done.returncode == 0 and written.exists():
            result.found[mode] = json.loads(written.read_text(encoding="utf-8"))
        else:
            result.errors[mode] = done.stderr.strip()[-300:]
    return result
