from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.runner.output import prepare_output


def _names(directory: Path) -> set[str]:
    return {entry.name for entry in directory.iterdir()}


def test_makes_the_directory_and_its_parents(tmp_path: Path) -> None:
    output = prepare_output(tmp_path / "a/b", force=False)

    assert output.capture.is_dir()
    assert output.capture.parent == output.path
    assert output.kept_aside is None


def test_an_earlier_report_is_kept_aside_under_the_first_free_number(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report/session.json").write_text("old")
    (tmp_path / "report.1").mkdir()

    output = prepare_output(tmp_path / "report", force=False)

    assert output.kept_aside == tmp_path / "report.2"
    assert (tmp_path / "report.2/session.json").read_text() == "old"
    assert _names(output.path) == {output.capture.name}


def test_force_leaves_it_where_it_is(tmp_path: Path) -> None:
    (tmp_path / "session.json").write_text("old")

    output = prepare_output(tmp_path, force=True)

    assert output.kept_aside is None
    assert (tmp_path / "session.json").read_text() == "old"


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


def test_a_directory_that_cannot_be_written_is_refused() -> None:
    with pytest.raises(PipediagError, match="The script was not run"):
        prepare_output(Path("/proc/self/report"), force=False)


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


def test_no_trace_leaves_nothing(tmp_path: Path) -> None:
    output = prepare_output(tmp_path / "report", force=False)

    output.keep_trace()

    assert _names(output.path) == {output.capture.name}


def test_abandoning_puts_everything_back(tmp_path: Path) -> None:
    (tmp_path / "report").mkdir()
    (tmp_path / "report/session.json").write_text("old")

    prepare_output(tmp_path / "report", force=False).abandon()

    assert _names(tmp_path) == {"report"}
    assert (tmp_path / "report/session.json").read_text() == "old"
