from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.facts.names import in_checkout
from pipediag.gate.output import render
from tests.gate.results import make_check, make_result


@pytest.fixture(autouse=True)
def of_no_service(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_WORKSPACE", "CI_PROJECT_DIR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """With a project in a directory of its own, in which the gate is called."""
    project = tmp_path / "repository" / "models" / "ranking"
    project.mkdir(parents=True)
    (tmp_path / "repository" / ".git").mkdir()
    monkeypatch.chdir(project)
    return tmp_path / "repository"


def test_a_file_is_named_from_the_root_of_the_repository(repository: Path) -> None:
    assert in_checkout(str(repository / "models/ranking/train.py")) == "models/ranking/train.py"
    assert in_checkout(str(repository / "common/data.py")) == "common/data.py"


def test_a_script_as_typed_is_one_of_the_current_directory(repository: Path) -> None:
    assert in_checkout("train.py") == "models/ranking/train.py"
    assert in_checkout("../train.py") == "models/train.py"


@pytest.mark.parametrize("file", ["/usr/lib/python3/data.py", "../../../../etc/passwd"])
def test_a_file_of_another_place_stays_as_it_is(repository: Path, file: str) -> None:
    assert in_checkout(file) == file


@pytest.mark.parametrize("name", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_without_git_the_service_says_where_the_root_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path / "sub")
    assert in_checkout("train.py") == "sub/train.py"


def test_a_repository_within_the_workspace_is_the_root(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(repository.parent))
    assert in_checkout("train.py") == "models/ranking/train.py"


def test_without_a_root_the_current_directory_is_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert in_checkout(str(tmp_path / "train.py")) == "train.py"


def test_a_path_that_no_file_has_is_only_text(repository: Path) -> None:
    assert in_checkout("a\0b.py") == "models/ranking/a\0b.py"
    assert len(in_checkout("x" * 100_000)) < 5_000


@pytest.mark.parametrize("form", ["github", "junit", "markdown"])
def test_what_a_service_shows_names_it_so(repository: Path, form: str) -> None:
    check = make_check("fail", file=str(repository / "models/ranking/train.py"))
    said = render(form, [make_result(check)])
    shown = said.partition("\n")[0] if form == "github" else said
    assert "models/ranking/train.py" in shown
    assert str(repository) not in shown
