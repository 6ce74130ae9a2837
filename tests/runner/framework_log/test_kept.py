from __future__ import annotations

from pathlib import Path

from pipediag.runner.framework_log.kept import LAST_LINES, LONGEST_LINE, MOST_BYTES, Kept, Report


def test_all_are_counted_and_the_last_are_at_hand(tmp_path: Path) -> None:
    kept = Kept(str(tmp_path / "log"))
    for number in range(LAST_LINES + 5):
        kept(b"%d \xff" % number + b"x" * LONGEST_LINE)

    report = Report.decoded(kept.report().encoded())

    assert report.lines == LAST_LINES + 5
    assert len(report.last) == LAST_LINES
    assert report.last[0].startswith("5 \ufffdx")
    assert len(report.last[0]) == LONGEST_LINE


def test_the_file_ends_before_it_is_too_large(tmp_path: Path) -> None:
    kept = Kept(str(tmp_path / "log"))
    line = b"x" * (MOST_BYTES // 3)
    for _ in range(4):
        kept(line)
    kept(b"short")

    assert (tmp_path / "log").read_bytes() == (line + b"\n") * 2
    assert kept.report().lines == 5


def test_a_file_that_can_not_be_written_is_done_without(tmp_path: Path) -> None:
    kept = Kept(str(tmp_path / "missing/log"))
    kept(b"line")

    assert kept.report() == Report(1, ("line",))


def test_no_file_is_made_for_nothing(tmp_path: Path) -> None:
    Kept(str(tmp_path / "log"))

    assert list(tmp_path.iterdir()) == []
