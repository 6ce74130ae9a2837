"""How times, sizes, runs and files are named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipediag.facts.names import (
    as_typed,
    default_directory,
    exact_time,
    in_checkout,
    memory_size,
    share,
    time_taken,
)
from pipediag.gate.output import render
from tests.gate.results import make_check, make_result

NOTHING = re.compile(r"^0(\.0+)? ")


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


@given(st.floats(min_value=1.0, max_value=1e14))
def test_something_is_never_nothing(value: float) -> None:
    assert not NOTHING.match(memory_size(value))
    assert not NOTHING.match(time_taken(value / 1e4))
    assert not NOTHING.match(share(min(100.0, value / 1e6)))


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


def test_a_directory_goes_by_its_own_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "application").mkdir()
    monkeypatch.chdir(tmp_path / "application")
    assert default_directory(".", module=False) == Path("reports/application")


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
