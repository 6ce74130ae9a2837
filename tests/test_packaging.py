"""What is distributed, what it requires, and what a command loads."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import pipediag
import tests
from pipediag.cli.main import COMMANDS
from pipediag.tensorflow_names import OLDEST
from tests.versions.environments import MATRIX

ROOT = Path(tests.__file__).resolve().parent.parent
FOLDERS = ("pipediag", "tests", "benchmarks", "sample_pipelines", "docs", "requirements", ".ci")
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")
"""Within the tree: neither an address nor a place on the same page."""


def distributed(builder: type[SdistBuilder] | type[WheelBuilder]) -> set[str]:
    found = builder(str(ROOT)).recurse_included_files()
    return {Path(file.relative_path).as_posix() for file in found}


def in_tree(folder: str) -> set[str]:
    return {
        file.relative_to(ROOT).as_posix()
        for file in (ROOT / folder).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


@pytest.fixture(scope="module")
def source() -> set[str]:
    return distributed(SdistBuilder)


@pytest.mark.parametrize("folder", FOLDERS)
def test_the_source_distribution_has_all_that_the_tests_read(folder: str, source: set[str]) -> None:
    assert in_tree(folder)
    assert in_tree(folder) - source == set()


def test_it_has_nothing_that_was_made_on_the_spot(source: set[str]) -> None:
    made = re.compile(r"(reports/(?!README)|\.venv|dist|build)")
    assert not [file for file in source if made.match(file)]
    assert {"Makefile", "LICENSE", "README.md"} <= source


def test_what_its_documents_link_to_is_in_it(source: set[str]) -> None:
    pages = [file for file in source if re.match(r"(docs/)?[^/]+\.md$", file)]
    assert len(pages) > 10
    for page in pages:
        for target in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
            linked = (ROOT / page).parent.joinpath(target).resolve().relative_to(ROOT).as_posix()
            assert linked in source, f"{page} links to {target}"


def test_the_wheel_has_the_package_with_its_data_and_nothing_else() -> None:
    assert distributed(WheelBuilder) == in_tree("pipediag")


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DEPENDENCIES = {Requirement(line).name: Requirement(line) for line in PROJECT["dependencies"]}
PYTHONS = sorted({environment.python for environment in MATRIX}, key=lambda v: int(v[2:]))


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


def test_commands_are_imported_without_heavy_libraries() -> None:
    modules = loaded_with("pipediag.cli.main", *(path for path, _ in COMMANDS.values()))
    assert modules & HEAVY == set()


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
