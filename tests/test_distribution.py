"""What is distributed, told without building it; `make sdist` builds it and tests that."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hatchling.builders.sdist import SdistBuilder
from hatchling.builders.wheel import WheelBuilder
from trove_classifiers import classifiers

import tests

ROOT = Path(tests.__file__).resolve().parent.parent
FOLDERS = ("pipediag", "tests", "benchmarks", "sample_pipelines", "docs", "requirements", ".ci")
DOCUMENTS = ("README", "CONTRIBUTING", "SECURITY", "CHANGELOG")
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
    foreign = {file for file in source if re.match(r"(reports/(?!README)|\.venv|dist|build)", file)}
    assert foreign == set()
    assert {"Makefile", "LICENSE", "README.md"} <= source


def test_what_its_documents_link_to_is_in_it(source: set[str]) -> None:
    pages = [
        *(f"{name}.md" for name in DOCUMENTS),
        *(f for f in source if re.match(r"docs/.*\.md$", f)),
    ]
    for page in pages:
        assert page in source
        for target in LINK.findall((ROOT / page).read_text(encoding="utf-8")):
            linked = (ROOT / page).parent.joinpath(target).resolve().relative_to(ROOT).as_posix()
            assert linked in source, f"{page} links to {target}"


def test_the_wheel_has_the_package_with_its_data_and_nothing_else() -> None:
    assert distributed(WheelBuilder) == in_tree("pipediag")


def test_the_classifiers_are_ones_that_indexes_know() -> None:
    project = SdistBuilder(str(ROOT)).metadata.core
    assert project.classifiers
    assert set(project.classifiers) <= set(classifiers)
