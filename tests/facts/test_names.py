"""How times, sizes, runs and files are named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.facts.names import (
    as_typed,
    default_directory,
    exact_time,
    in_checkout,
    memory_size,
    share,
    time_taken,
)


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0.04, "under 0.1 ms"),
        (0.25, "0.2 ms"),
        (41.6, "42 ms"),
        (999.4, "999 ms"),
        (999.7, "1.0 s"),
        (2100.0, "2.1 s"),
    ],
)
def test_times(ms: float, text: str) -> None:
    assert time_taken(ms) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (1.0, "1 bytes"),
        (700 * 2**10, "700 KiB"),
        (42 * 2**20, "42 MiB"),
        (3.25 * 2**30, "3.2 GiB"),
    ],
)
def test_sizes(count: float, text: str) -> None:
    assert memory_size(count) == text


@pytest.mark.parametrize(
    ("percent", "text"), [(0.0, "0 %"), (0.04, "under 0.1 %"), (34.14, "34.1 %")]
)
def test_shares(percent: float, text: str) -> None:
    assert share(percent) == text


@pytest.mark.parametrize(
    ("ms", "said"),
    [(0.31, "0.31 ms"), (17.66, "17.7 ms"), (999.4, "999 ms"), (1074.0, "1.07 s"), (60e3, "60 s")],
)
def test_three_digits_and_no_power_of_ten(ms: float, said: str) -> None:
    assert exact_time(ms) == said


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


@pytest.mark.parametrize("path", ["reports/train", "/elsewhere/report", "../report"])
def test_a_path_that_is_not_below_here_or_short_already_stays(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert as_typed(Path(path)) == Path(path)


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
