"""Programs that start TensorFlow in their own process and print what they find, a line each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

LIMIT_S = 300


def told_by(program: str, **environment: str) -> dict[str, dict[str, Any]]:
    """What each line that it prints as JSON says, by its `name`; other lines are a framework's."""
    ended = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
        env={**os.environ, **environment},
    )
    assert ended.returncode == 0, ended.stderr
    lines = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
    return {line.pop("name"): line for line in lines}
