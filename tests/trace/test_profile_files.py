from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.trace.profile_files import find_profiles, host_of

NEW, OLD = "2026_01_02_00_00_00", "2026_01_01_00_00_00"


@pytest.fixture
def log_directory(tmp_path: Path) -> Path:
    for run, hosts in ((NEW, "ba"), (OLD, "a")):
        folder = tmp_path / "logs" / "train" / "plugins" / "profile" / run
        folder.mkdir(parents=True)
        for host in hosts:
            (folder / f"{host}.xplane.pb").touch()
        (folder / "a.trace.json.gz").touch()
    return tmp_path / "logs"


def names(found: list[Path]) -> list[str]:
    return [f"{file.parent.name}/{file.name}" for file in found]


BOTH = [f"{NEW}/a.xplane.pb", f"{NEW}/b.xplane.pb"]


@pytest.mark.parametrize(
    "inside",
    [".", "train", "train/plugins", "train/plugins/profile", f"train/plugins/profile/{NEW}"],
)
def test_the_newest_run_from_anywhere_above_it(log_directory: Path, inside: str) -> None:
    assert names(find_profiles(log_directory / inside)) == BOTH


def test_a_run_that_is_named(log_directory: Path) -> None:
    run = log_directory / "train" / "plugins" / "profile" / OLD
    assert names(find_profiles(run)) == [f"{OLD}/a.xplane.pb"]


def test_a_file_is_itself_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "trace.txt"
    path.touch()
    assert find_profiles(path) == [path]


def test_the_newest_window_of_each_worker(tmp_path: Path) -> None:
    for name in ("a_1.1700000000500", "a_1.1700000001000", "b_2.1700000000000"):
        (tmp_path / f"{name}.pt.trace.json").touch()
    (tmp_path / "a_1.1700000002000.pt.trace.json.gz").touch()
    assert [file.name for file in find_profiles(tmp_path)] == [
        "a_1.1700000002000.pt.trace.json.gz",
        "b_2.1700000000000.pt.trace.json",
    ]


def test_what_is_no_file_is_no_profile(tmp_path: Path) -> None:
    (tmp_path / "directory.xplane.pb").mkdir()
    (tmp_path / "loop.xplane.pb").symlink_to("loop.xplane.pb")
    (tmp_path / "nowhere.xplane.pb").symlink_to("missing")
    (tmp_path / "itself").symlink_to(tmp_path)
    with pytest.raises(PipediagError, match=r"no \*\.xplane\.pb"):
        find_profiles(tmp_path)
    (tmp_path / "a.xplane.pb").touch()
    assert [file.name for file in find_profiles(tmp_path)] == ["a.xplane.pb"]


@pytest.mark.parametrize("name", ["missing", "loop", "x" * 5_000])
def test_nothing_there(tmp_path: Path, name: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(PipediagError, match=r"There is no profile at|Cannot look for profiles at"):
        find_profiles(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "host"),
    [
        ("vm-1.example.org.xplane.pb", "vm-1.example.org"),
        ("34.83.195.180_6003.xplane.pb", "34.83.195.180_6003"),
        ("vm.xplane.pb.gz", "vm"),
        ("gpu7_4242.1712195495519.pt.trace.json.gz", "gpu7_4242"),
        ("rank0.pt.trace.json", "rank0"),
        ("rank-3.json.gz", "rank-3"),
        ("trace", "trace"),
    ],
)
def test_the_host_is_in_the_name(name: str, host: str) -> None:
    assert host_of(Path("runs") / name) == host
