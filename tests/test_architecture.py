"""What the import contracts cannot say: what is loaded, not what is written."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from pipediag.cli.main import COMMANDS

HEAVY = {"tensorflow", "keras", "jax", "pandas", "scipy"}

PROBE = """
import importlib, json, sys
importlib.import_module(sys.argv[1])
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize("module", ["pipediag.cli.main", *(path for path, _ in COMMANDS.values())])
def test_a_command_is_imported_without_heavy_libraries(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROBE, module], capture_output=True, text=True, check=True
    )
    assert set(json.loads(done.stdout)) & HEAVY == set()
