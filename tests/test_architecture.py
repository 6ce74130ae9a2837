"""What the import contracts cannot say: what is loaded, not what is written."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import pipediag
from pipediag.cli.main import COMMANDS

HEAVY = {"tensorflow", "keras", "jax", "pandas"}
LIBRARIES = {
    *"numpy pydantic pydantic_core msgspec jinja2 markupsafe google rich click".split(),
    *"libcst psutil pynvml wrapt tensorflow keras tf_keras jax".split(),
}

PROBE = """
import importlib, json, sys
for module in sys.argv[1:]:
    importlib.import_module(module)
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


@pytest.mark.parametrize("module", ["pipediag.cli.main", *(path for path, _ in COMMANDS.values())])
def test_a_command_is_imported_without_heavy_libraries(module: str) -> None:
    assert loaded_with(module) & HEAVY == set()


def test_the_users_process_gets_no_library_of_ours() -> None:
    """A contract cannot see what the `__init__` of a package above brings along."""
    package = Path(pipediag.__file__).parent
    modules = [
        ".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__")
        for folder in ("child", "capture")
        for path in sorted((package / folder).rglob("*.py"))
    ]
    assert len(modules) > 50
    assert loaded_with(*modules) & LIBRARIES == set()


def loaded_with(*modules: str) -> set[str]:
    """The top names of all that is in memory once these are imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, *modules], capture_output=True, text=True, check=True
    )
    return set(json.loads(done.stdout))
