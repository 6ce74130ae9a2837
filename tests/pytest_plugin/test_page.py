"""The tests that docs/ci.md and README.md show, run as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.factories import make_compute_bound_session, make_session
from tests.pytest_plugin.conftest import Library

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
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
    pytester.makepyfile(training=TRAINING, test_training_speed=shown("docs/ci.md"))
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


def test_the_page_names_all_that_the_fixture_has() -> None:
    from pipediag.pytest_plugin.measurements import Measurements

    page = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
    public = [name for name in vars(Measurements) if name.startswith(("profile", "assert_"))]
    assert len(public) == 4
    assert all(name in page for name in public)
