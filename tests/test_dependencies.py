"""What pipediag asks for fits beside the TensorFlows that it measures."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import tests
from pipediag.tensorflow_versions import OLDEST
from tests.versions.conftest import ASKED
from tests.versions.matrix import MATRIX, Environment, chosen

ROOT = Path(tests.__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEPENDENCIES = {Requirement(line).name: Requirement(line) for line in PROJECT["dependencies"]}
PYTHONS = sorted({environment.python for environment in MATRIX}, key=lambda v: int(v[2:]))
LIMIT_S = 120
_UV = str(Path(sys.executable).with_name("uv"))
_COMPILE = (_UV, "pip", "compile", "--quiet", "--no-annotate", "--no-header")


@pytest.mark.parametrize(
    ("library", "fits", "too_old"),
    [
        # TensorFlow 2.14 to 2.17 bring protobuf below 5; GetMessageClass came with 4.22.
        ("protobuf", ["4.22.0", "4.25.9", "5.29.6", "7.36.2"], ["4.21.12", "3.20.3"]),
        # TensorFlow 2.14 to 2.17 bring NumPy below 2.
        ("numpy", ["1.26.4", "2.0.2", "2.5.5"], []),
        # TensorFlow 2.14 and 2.15 bring wrapt below 1.15.
        ("wrapt", ["1.14.2", "2.5.2"], []),
    ],
)
def test_what_a_tensorflow_brings_may_stay(
    library: str, fits: list[str], too_old: list[str]
) -> None:
    bounds = DEPENDENCIES[library].specifier
    assert list(bounds.filter(fits)) == fits
    assert list(bounds.filter(too_old)) == []


def test_the_extra_and_the_refusal_agree_on_the_oldest_tensorflow() -> None:
    (extra,) = map(Requirement, PROJECT["optional-dependencies"]["tensorflow"])
    assert extra.specifier == SpecifierSet(f">={OLDEST[0]}.{OLDEST[1]}")
    assert MATRIX[0].tensorflow in extra.specifier


def test_the_pythons_that_are_claimed_are_those_of_the_matrix() -> None:
    label = "Programming Language :: Python :: "
    claimed = [line.removeprefix(label) for line in PROJECT["classifiers"] if "3." in line]
    assert claimed == PYTHONS
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"


def test_python_has_had_toml_since_3_11() -> None:
    marker = DEPENDENCIES["tomli"].marker
    assert marker is not None
    needed = [python for python in PYTHONS if marker.evaluate({"python_version": python})]
    assert needed == ["3.10"]


def resolved(environment: Environment, *options: str, wanted: list[str]) -> str:
    """The versions that an index would serve, as requirements."""
    try:
        done = subprocess.run(
            [*_COMPILE, *options, "--python-version", environment.python, "-"],
            input="\n".join([*environment.requirements, *wanted]),
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        pytest.skip(f"the index gave no answer within {LIMIT_S} s")
    # Of an environment alone no solution is the index's doing; beside it, it is ours.
    if done.returncode and not (wanted and "No solution found" in done.stderr):
        pytest.skip(f"no index could be asked: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, done.stderr
    return done.stdout


ASKED_FOR = chosen(os.environ.get(ASKED, ""))


@pytest.mark.skipif(ASKED not in os.environ, reason="an index is asked in `make test-versions`")
@pytest.mark.parametrize("environment", ASKED_FOR, ids=lambda environment: environment.name)
def test_nothing_that_is_there_is_moved(environment: Environment, tmp_path: Path) -> None:
    there = tmp_path / "there.txt"
    there.write_text(resolved(environment, wanted=[]))
    both = resolved(environment, "-c", str(there), wanted=PROJECT["dependencies"])
    assert set(there.read_text().splitlines()) <= set(both.splitlines())
