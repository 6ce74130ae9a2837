"""Files of all formats, the report as Markdown, and briefs for a rewrite."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, NoReturn

import pytest
from markdown_it import MarkdownIt

from pipediag import reporters
from pipediag.errors import PipediagError
from pipediag.reporters import markdown
from pipediag.reporters.brief import as_json, as_markdown, briefs
from pipediag.reporters.sections import sections
from pipediag.reporters.tables import TABLES
from pipediag.session.edits import Edit
from pipediag.session.findings import Finding, Patch, PatchedFile
from pipediag.session.model import HotLine, Session
from pipediag.session.trials import NOT_TRIED, Trial
from tests import factories
from tests.factories import make_finding, make_host, make_session
from tests.records import make_operation, make_pipeline
from tests.reporters import sessions, trial_sessions

FILES = {"report.html", *(f"{name}.csv" for name in TABLES)}


def test_writes_every_file_and_says_which(tmp_path: Path) -> None:
    written = reporters.write_all(factories.make_session(), tmp_path / "out")
    assert {path.name for path in written} == FILES
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES


def test_one_failing_file_does_not_cost_the_others(tmp_path: Path) -> None:
    (tmp_path / "steps.csv").mkdir()
    with pytest.raises(PipediagError, match=r"steps\.csv") as raised:
        reporters.write_all(factories.make_session(), tmp_path)
    assert str(raised.value).count("\n") == 0
    assert {path.name for path in tmp_path.iterdir() if path.is_file()} == FILES - {"steps.csv"}


def _broken(*_: object) -> NoReturn:
    raise KeyError("nobody")


def test_an_error_of_ours_in_one_report_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipediag.reporters.html._context", _broken)
    monkeypatch.setitem(TABLES, "findings", _broken)
    with pytest.raises(PipediagError) as raised:
        reporters.write_all(factories.make_session(), tmp_path)
    page, table = str(raised.value).splitlines()
    assert "html" in page
    assert "KeyError" in page
    assert "findings.csv" in table
    assert "please report it" in table
    assert {path.name for path in tmp_path.iterdir()} == FILES - {"report.html", "findings.csv"}


PARSER = MarkdownIt("commonmark").enable("table")


def written(session: Session) -> str:
    return markdown.render(session)


def headings(text: str) -> list[str]:
    tokens = PARSER.parse(text)
    return [tokens[at + 1].content for at, one in enumerate(tokens) if one.type == "heading_open"]


def test_it_says_what_an_issue_would_be_asked_for() -> None:
    session = trial_sessions.everything_tried()
    text = written(session.but(run=factories.make_run()))
    assert headings(text)[0].startswith("pipediag: Input-bound")
    assert headings(text)[1:] == [
        "Where the run's time goes",
        "Where a step's time goes",
        "Input pipeline",
        "Findings",
        "Where it ran",
    ]
    assert "3.1x" in text
    assert "alternated" in text
    assert "| Waiting for input |" in text
    assert session.pipediag_version in text


@pytest.mark.parametrize(
    "make", [factories.make_session, sessions.enormous, sessions.nothing_measured]
)
def test_its_tables_are_tables(make: Any) -> None:
    session = make()
    tokens = PARSER.parse(written(session))
    tables = sum(token.type == "table_open" for token in tokens)
    assert tables == len(list(sections(session)))
    assert not any(token.type == "html_block" for token in tokens)


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
    about_results = make_finding("misplaced-cache", subject="correctness", edit=None)
    passed = make_finding("parallel-map", status="pass", edit=None)
    assert briefs(session_of(file, written, about_results, passed, patch=patch)) == []
    assert len(briefs(session_of(file, written))) == 1


@pytest.mark.parametrize(
    ("trial", "why"),
    [
        (NOT_TRIED, "It had no loop."),
        (Trial(state="not_tried", reason="No time was left."), "No time was left."),
        (Trial(state="inconclusive", reason="One round is too few."), "One round is too few."),
    ],
)
def test_why_there_is_no_patch(file: Path, trial: Trial, why: str) -> None:
    finding = make_finding("missing-cache", edit=Edit("cache:op", "a cache", ()), trial=trial)
    session = session_of(file, finding).but(trials_missing="It had no loop.")
    (brief,) = briefs(session)
    assert why in brief.no_patch
    assert "--with" not in brief.no_patch
    written = finding.but(patch=Patch(edits=["cache:op"], diff="--- a\n"))
    (brief,) = briefs(session_of(file, written))
    assert "--with missing-cache" in brief.no_patch


def test_a_script_named_by_its_whole_path_is_named_from_its_directory(file: Path) -> None:
    session = session_of(file, by_hand(file))
    script = session.script.model_copy(update={"path": "/work/train.py", "directory": "/work"})
    (brief,) = briefs(session.model_copy(update={"script": script}))

    assert brief.verify[0] == "cd /work"
    assert any("-- train.py" in command for command in brief.verify)


@pytest.mark.parametrize("path", ["../train.py", "/work/run/../train.py", "/elsewhere/train.py"])
def test_a_script_outside_its_directory_is_not_compared_with_itself(file: Path, path: str) -> None:
    """A copy of the directory would run the same file."""
    session = session_of(file, by_hand(file))
    script = session.script.but(path=path, directory="/work/run")
    (brief,) = briefs(session.but(script=script))
    assert not any("compare" in command for command in brief.verify)


@pytest.mark.parametrize("content", [None, "def broken(:\n", CODE.replace("slow", "fast")])
def test_code_that_can_not_be_read_is_left_out(file: Path, content: str | None) -> None:
    file.unlink()
    if content is not None:
        file.write_text(content, encoding="utf-8")
    (brief,) = briefs(session_of(file, by_hand(file)))
    assert brief.code == []
    assert as_markdown([brief])


@pytest.mark.parametrize("of", ["patch", "operation"])
def test_code_is_left_out_where_it_is_no_longer_what_was_measured(file: Path, of: str) -> None:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    patch = Patch(files=[PatchedFile(path=str(file), sha256=digest)])
    op = make_operation("map", "map", file=str(file), line=7, code="yield slow(row)")
    session = make_session(
        findings=[by_hand(file)],
        patch=patch if of == "patch" else None,
        pipeline=make_pipeline(ops=[op] if of == "operation" else [], bottleneck_op_id=None),
    )
    assert briefs(session)[0].code
    file.write_text(f"import os\n{CODE}", encoding="utf-8")
    assert briefs(session)[0].code == []


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
