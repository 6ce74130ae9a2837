"""The plugin's cost, and the tests that pages show."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.factories import make_compute_bound_session, make_session
from tests.pytest_plugin.conftest import Library

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]

LOADED = """
import json, sys
import pytest

class Nothing:
    def pytest_collection_finish(self):
        print(json.dumps(sorted(sys.modules)), file=sys.stderr)

sys.exit(pytest.main(sys.argv[1:], plugins=[Nothing()]))
"""


def modules(directory: Path, *options: str) -> set[str]:
    """All that is in memory when pytest has collected its tests."""
    done = subprocess.run(
        [sys.executable, "-c", LOADED, "-q", "-p", "no:cacheprovider", *options],
        cwd=directory,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return set(json.loads(done.stderr))


def test_who_does_not_ask_for_it_gets_one_module(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text("def test_it():\n    pass\n")
    beside = modules(tmp_path) - modules(tmp_path, "-p", "no:pipediag")
    assert beside == {"pipediag", "pipediag.pytest_plugin"}


TRAINING = """
def make_dataset():
    return "data"

def make_model():
    return "model"
"""


def shown(page: str) -> str:
    """The one block of Python in it that has tests."""
    text = (ROOT / page).read_text(encoding="utf-8")
    [block] = [
        one for one in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "def te" in one
    ]
    return str(block)


def test_the_tests_of_the_page_run(pytester: pytest.Pytester, library: Library) -> None:
    library.session = make_compute_bound_session()
    pytester.makepyfile(training=TRAINING, test_training_speed=shown("docs/library.md"))
    pytester.runpytest_inprocess("--strict-markers").assert_outcomes(passed=2)
    assert [call[2] for call in library.calls] == [
        {"epochs": 1000, "budget": 0.0},
        {"epochs": 5, "budget": 30},
    ]


def test_the_test_of_the_readme_runs(pytester: pytest.Pytester, library: Library) -> None:
    library.session = make_session()
    names = "from training import make_dataset, make_model\n\n"
    pytester.makepyfile(training=TRAINING, test_it=names + shown("README.md"))
    pytester.runpytest_inprocess().assert_outcomes(failed=1)
