"""How times, sizes, runs and files are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.facts.names import (
    as_typed,
    default_directory,
    in_checkout,
)


@pytest.mark.parametrize(
    ("script", "module", "expected"),
    [
        ("train.py", False, "reports/train"),
        ("deep/er/train.v2.py", False, "reports/train.v2"),
        ("package.train", True, "reports/package.train"),
        ("application/", False, "reports/application"),
    ],
)
def test_it_goes_by_the_script(script: str, module: bool, expected: str) -> None:
    assert default_directory(script, module=module) == Path(expected)


@pytest.mark.parametrize("script", ["nul\0.py", "loop"])
def test_a_name_that_is_no_path_here_goes_by_its_stem(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A session from elsewhere may name anything."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "loop").symlink_to("loop")
    assert default_directory(script, module=False) == Path("reports") / Path(script).stem


def test_a_path_below_here_is_named_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_typed(Path.cwd() / "reports/train") == Path("reports/train")


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


@pytest.mark.parametrize("name", ["GITHUB_WORKSPACE", "CI_PROJECT_DIR"])
def test_without_git_the_service_says_where_the_root_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    (tmp_path / "sub").mkdir()
    monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.chdir(tmp_path / "sub")
    assert in_checkout("train.py") == "sub/train.py"
