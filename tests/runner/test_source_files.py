"""What a report shows of the source is what was measured, with the call that is meant."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipediag.facts.order import LINES_AROUND
from pipediag.runner import source_files
from pipediag.runner.source_files import call_span, sentence, with_excerpt, written_since
from pipediag.session.findings import CallSpan, SourceExcerpt
from pipediag.session.model import HotLine, Session
from tests.factories import make_host, make_session, make_verdict
from tests.records import make_function, make_operation, make_pipeline

LATER = 4e9
"""A time of day after which nothing was written."""
TEXT = "\n".join([*(f"# {n}" for n in range(1, 9)), "ds = ds.map(f).batch(2)", "fit(ds)", ""])


def session(file: Path, line: int | None = 9) -> Session:
    op = make_operation("map_0", "map", file=str(file), line=line)
    return make_session(
        pipeline=make_pipeline(ops=[op], bottleneck_op_id="map_0"),
        verdict=make_verdict(file=str(file), line=line, op_id="map_0"),
        findings=[],
    )


def excerpt(tmp_path: Path, content: bytes, line: int | None = 9) -> SourceExcerpt | None:
    file = tmp_path / "train.py"
    file.write_bytes(content)
    return with_excerpt(session(file, line), LATER).verdict.source


def test_the_lines_around_with_the_call(tmp_path: Path) -> None:
    found = excerpt(tmp_path, TEXT.encode())
    assert found is not None
    assert found.line - found.first_line == LINES_AROUND
    assert found.lines == ["# 6", "# 7", "# 8", "ds = ds.map(f).batch(2)", "fit(ds)", ""]
    assert found.call == CallSpan(line=9, column=8, end_line=9, end_column=14)


def test_line_ends_and_encodings_of_others(tmp_path: Path) -> None:
    text = "# coding: latin-1\n" + TEXT.replace("# 8", "# ü", 1).replace("# 1\n", "", 1)
    found = excerpt(tmp_path, text.replace("\n", "\r\n").encode("latin-1"))
    assert found is not None
    assert found.lines[2:4] == ["# ü", "ds = ds.map(f).batch(2)"]
    assert found.call is not None


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"ds", b"# coding: nonsense\n"])
def test_what_is_no_such_text_is_left_out(tmp_path: Path, content: bytes) -> None:
    assert excerpt(tmp_path, content) is None


def test_the_python_that_the_operation_calls_comes_with_its_lines(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TEXT, encoding="utf-8")
    helper = tmp_path / "helper.py"
    helper.write_text("def f(x):\n    sleep(1)\n    return x\n", encoding="utf-8")
    op = make_operation(
        "map_0",
        file=str(tmp_path / "train.py"),
        line=9,
        function=make_function(graph_ops={"PyFunc": 1}),
    )
    hot = HotLine(file=str(helper), line=2, function="f", percent=70.0, thread="source")
    made = session(tmp_path / "train.py").model_copy(
        update={
            "pipeline": make_pipeline(ops=[op], bottleneck_op_id="map_0"),
            "host": make_host(hot_python=[hot]),
        }
    )
    found = with_excerpt(made, LATER).verdict
    assert found.source is not None
    assert found.python_source == SourceExcerpt(
        file=str(helper),
        line=2,
        first_line=1,
        lines=["def f(x):", "    sleep(1)", "    return x", ""],
    )


def test_a_place_without_a_line_is_no_lines(tmp_path: Path) -> None:
    assert excerpt(tmp_path, TEXT.encode(), line=None) is None


def test_a_file_that_was_changed_since_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(TEXT, encoding="utf-8")
    assert with_excerpt(session(file), 0.0).verdict.source is None
    assert with_excerpt(session(tmp_path / "gone.py"), LATER).verdict.source is None


def test_the_call_over_several_lines_begins_at_its_name() -> None:
    text = "ds = (ä\n      .map(\n          f)\n      .batch(2))\n"
    assert call_span(text, "map", 2) == CallSpan(line=2, column=7, end_line=3, end_column=12)


def test_characters_not_bytes() -> None:
    assert call_span("ä = ü.map(ö)\n", "map", 1) == CallSpan(
        line=1, column=6, end_line=1, end_column=12
    )


def test_which_of_two_can_not_be_told() -> None:
    assert call_span("ds = a.map(f).map(g)\n", "map", 1) is None
    assert call_span("ds = a.map(f\n", "map", 1) is None
    assert call_span("ds = a.batch(2)\n", "map", 1) is None


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("old.txt", "new.txt", "backup/latest.h5", "report/session.json", ".git/index",
                 "__pycache__/main.pyc"):  # fmt: skip
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_is_new_is_found_but_for_reports_caches_and_hidden_folders(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began = (folder / "new.txt").stat().st_ctime - 1000
    assert written_since(began, [folder, folder], [folder / "report"]) == [
        "backup/latest.h5",
        "new.txt",
        "old.txt",
    ]
    later = (folder / "new.txt").stat().st_ctime + 1000
    assert written_since(later, [folder], []) == []
    os.utime(folder / "new.txt", (later + 1, later + 1))
    assert written_since(later, [folder], []) == ["new.txt"]


def test_files_elsewhere_have_their_whole_path(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert str(folder / "new.txt") in written_since(0.0, [folder], [])


def test_what_our_own_output_goes_to_is_none_of_the_scripts(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (folder / "report.txt").open("w") as out:
        real = os.fstat
        monkeypatch.setattr(
            source_files.os, "fstat", lambda number: real(out.fileno() if number == 1 else number)
        )
        assert "report.txt" not in written_since(0.0, [folder], [])


def test_the_search_is_short(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_files, "MOST_ENTRIES", 1)
    assert len(written_since(0.0, [folder], [])) == 1
    ticks = iter(range(0, 1000, 10))
    assert written_since(0.0, [folder], [], clock=lambda: next(ticks)) == []


def test_a_folder_that_is_gone_has_none(tmp_path: Path) -> None:
    assert written_since(0.0, [tmp_path / "gone"], []) == []


def test_the_sentence_names_the_first_few() -> None:
    assert sentence(["a"]) == (
        "The script was stopped. While it ran, a was made or changed: "
        "its next run may find and use it."
    )
    assert (
        "a, b, c and 2 more were made or changed: its next run may find and use them."
        in sentence(list("abcde"))
    )
