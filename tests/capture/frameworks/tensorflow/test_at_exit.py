from __future__ import annotations

import os
from pathlib import Path

from pipediag.capture.frameworks.tensorflow.at_exit import remove_cut_caches
from pipediag.session.recording import RecordedOperation

FILES = ("kept_0.lockfile", "kept_0.data-00000-of-00001", "kept_0.data-00000-of-00001.tempstate12",
         "kept_0.index", "kept_notes.txt", "kept_0.lockfile_of_mine.txt ")  # fmt: skip


def operation(name: str | None, kind: str = "cache") -> RecordedOperation:
    return RecordedOperation("op1", kind, "op1", None, None, parameters={"filename": name})


def made(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).write_text("x")
    return str(folder / "kept")


def left(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_was_written_of_a_cut_cache_goes_and_nothing_else(tmp_path: Path) -> None:
    name = made(tmp_path, *FILES)
    remove_cut_caches([operation(name)], began_s=0.0)
    assert left(tmp_path) == {"kept_notes.txt", "kept_0.lockfile_of_mine.txt "}


def test_a_complete_cache_stays(tmp_path: Path) -> None:
    name = made(tmp_path, "kept_0.lockfile", "kept.index")
    remove_cut_caches([operation(name)], began_s=0.0)
    assert left(tmp_path) == {"kept_0.lockfile", "kept.index"}


def test_files_of_an_earlier_run_stay(tmp_path: Path) -> None:
    name = made(tmp_path, "kept_0.lockfile")
    os.utime(f"{name}_0.lockfile", (1000.0, 1000.0))
    remove_cut_caches([operation(name)], began_s=2000.0)
    assert left(tmp_path) == {"kept_0.lockfile"}


def test_caches_in_memory_and_other_operations_have_no_files(tmp_path: Path) -> None:
    name = made(tmp_path, "kept_0.lockfile")
    remove_cut_caches([operation(None), operation(""), operation(name, "list_files")], 0.0)
    assert left(tmp_path) == {"kept_0.lockfile"}
