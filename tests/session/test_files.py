from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.session.files import write_text


def test_makes_the_directory_and_writes_utf_8_without_translating_line_ends(
    tmp_path: Path,
) -> None:
    path = tmp_path / "new" / "deep" / "report.html"

    write_text(path, "größe\n")

    assert path.read_bytes() == "größe\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) & 0o044 == 0o044 & ~os.umask(os.umask(0o022))


def test_a_full_disk_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(self: Path, mode: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "chmod", full)
    with pytest.raises(PipediagError, match=r"report\.html.*No space left.*Free some space"):
        write_text(path, "new")

    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]
    assert path.read_text() == "old"


def test_a_file_where_a_directory_should_be(tmp_path: Path) -> None:
    (tmp_path / "reports").write_text("")

    with pytest.raises(PipediagError, match=r"Could not write .*steps\.csv.*-o"):
        write_text(tmp_path / "reports" / "steps.csv", "x")


def test_a_directory_of_that_name(tmp_path: Path) -> None:
    (tmp_path / "report.html").mkdir()

    with pytest.raises(PipediagError, match="directory of that name"):
        write_text(tmp_path / "report.html", "x")
    assert [item.name for item in tmp_path.iterdir()] == ["report.html"]
