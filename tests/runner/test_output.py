from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.runner.output import DirectoryLock, prepare_output


def _names(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


def test_an_earlier_report_is_kept_aside_under_the_first_free_number(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report/session.json").write_text("old")
    (tmp_path / "report.1").mkdir()

    output = prepare_output(tmp_path / "report", force=False)

    assert output.kept_aside == tmp_path / "report.2"
    assert (tmp_path / "report.2/session.json").read_text() == "old"
    assert _names(output.path) == {output.capture.name}


def test_a_directory_of_something_else_is_refused_and_untouched(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")

    with pytest.raises(PipediagError, match="holds no pipediag report"):
        prepare_output(tmp_path, force=False)

    assert _names(tmp_path) == {"thesis.tex"}


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(PipediagError, match="cannot write to the output directory"):
        prepare_output(tmp_path / "file/report", force=False)
    with pytest.raises(PipediagError, match="cannot write to the output directory"):
        prepare_output(tmp_path / "file", force=False)


def test_the_trace_takes_the_place_of_an_earlier_one(tmp_path: Path) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace/old").write_text("")
    output = prepare_output(tmp_path, force=True)
    (output.capture / "trace").mkdir()
    (output.capture / "trace/new").write_text("")

    output.keep_trace()
    output.discard_capture()

    assert _names(tmp_path) == {"trace"}
    assert _names(tmp_path / "trace") == {"new"}


def test_abandoning_puts_everything_back(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report/session.json").write_text("old")

    prepare_output(tmp_path / "report", force=False).abandon()

    assert _names(tmp_path) == {"report"}
    assert (tmp_path / "report/session.json").read_text() == "old"


def test_a_directory_that_is_being_written_to_is_refused(tmp_path: Path) -> None:
    first = prepare_output(tmp_path / "report", force=False)

    for force in (False, True):
        with pytest.raises(PipediagError, match="another analysis is writing to"):
            prepare_output(tmp_path / "report", force=force)
    assert _names(tmp_path) == {"report"}

    first.release()
    assert prepare_output(tmp_path / "report", force=False).kept_aside is not None


def test_of_many_that_begin_at_once_one_gets_the_directory(tmp_path: Path) -> None:
    for race in range(50):
        report = tmp_path / f"{race}/report"
        report.mkdir(parents=True)
        (report / "session.json").write_text("old")
        start = threading.Barrier(8)

        def prepare(_: int, report: Path = report, start: threading.Barrier = start) -> str:
            start.wait()
            try:
                prepare_output(report, force=False)
            except PipediagError as error:
                return str(error)
            return "it is ours"

        with ThreadPoolExecutor(8) as pool:
            outcomes = list(pool.map(prepare, range(8)))

        refusals = [outcome for outcome in outcomes if outcome != "it is ours"]
        assert len(refusals) == 7
        assert _names(report.parent) == {"report", "report.1"}
        assert (report.parent / "report.1/session.json").read_text() == "old"


def test_a_process_that_was_forked_meanwhile_does_not_keep_the_directory(tmp_path: Path) -> None:
    lock = DirectoryLock(tmp_path)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.close(writing)
        os.read(reading, 1)
        os._exit(0)
    lock.release()
    again = DirectoryLock(tmp_path)
    os.close(writing)
    os.close(reading)
    os.waitpid(child, 0)
    assert again.is_of(tmp_path)
    again.release()
