"""Briefs for a rewrite: which findings get one, and that each can be read alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipediag.reporters.brief import as_json, as_markdown, briefs
from pipediag.session.edits import Edit
from pipediag.session.findings import Finding, Patch
from pipediag.session.model import HotLine, Session
from tests.factories import make_finding, make_host, make_session

CODE = "def before():\n    pass\n\n\ndef rows():\n    for row in source:\n        yield slow(row)\n"


def session_of(file: Path, *findings: Finding, patch: Patch | None = None) -> Session:
    line = HotLine(
        file=str(file),
        line=7,
        function="rows",
        percent=62.5,
        thread="source",
        code="yield slow(row)",
    )
    host = make_host(hot_python=[line])
    return make_session(findings=list(findings), host=host, patch=patch)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.py"
    path.write_text(CODE, encoding="utf-8")
    return path


def by_hand(file: Path) -> Finding:
    return make_finding("python-input", file=str(file), line=7, edit=None, speedup_at_most=7.7)


def test_a_finding_without_a_patch_gets_its_function_with_shares_by_line(file: Path) -> None:
    (brief,) = briefs(session_of(file, by_hand(file)))
    assert (brief.rule, brief.line) == ("python-input", 7)
    assert brief.at_most is not None
    assert [(line.number, line.percent_of_samples) for line in brief.code] == [
        (5, None),
        (6, None),
        (7, 62.5),
    ]
    assert any("pipediag compare" in command for command in brief.verify)


def test_what_the_patch_holds_or_is_about_results_gets_none(file: Path) -> None:
    edit = Edit("cache:op", "a cache", ())
    written = make_finding("missing-cache", edit=edit)
    patch = Patch(edits=[edit.id], diff="--- a\n")
    about_results = make_finding("small-shuffle", subject="quality", edit=None)
    passed = make_finding("parallel-map", status="pass", edit=None)
    assert briefs(session_of(file, written, about_results, passed, patch=patch)) == []
    assert len(briefs(session_of(file, written))) == 1


def test_a_script_named_by_its_whole_path_is_named_from_its_directory(file: Path) -> None:
    session = session_of(file, by_hand(file))
    script = session.script.model_copy(update={"path": "/work/train.py", "directory": "/work"})
    (brief,) = briefs(session.model_copy(update={"script": script}))

    assert brief.verify[0] == "cd /work"
    assert any("-- train.py" in command for command in brief.verify)


@pytest.mark.parametrize("content", [None, "def broken(:\n", CODE.replace("slow", "fast")])
def test_code_that_can_not_be_read_is_left_out(file: Path, content: str | None) -> None:
    file.unlink()
    if content is not None:
        file.write_text(content, encoding="utf-8")
    (brief,) = briefs(session_of(file, by_hand(file)))
    assert brief.code == []
    assert as_markdown([brief])


def test_both_forms_hold_the_same(file: Path) -> None:
    found = briefs(session_of(file, by_hand(file)))
    text, (read,) = as_markdown(found), json.loads(as_json(found))
    assert read["code"][2] == {
        "number": 7,
        "code": "        yield slow(row)",
        "percent_of_samples": 62.5,
    }
    for command in read["verify"]:
        assert command in text
    assert read["advice"] in text
