"""The source that reports show, patches, and the output directory."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pipediag.errors import PipediagError
from pipediag.facts.order import LINES_AROUND
from pipediag.facts.promise import promised
from pipediag.reporters.brief import briefs
from pipediag.runner import source_files
from pipediag.runner.output import prepare_output
from pipediag.runner.source_files import (
    confirmed_findings,
    with_excerpt,
    with_patches,
    with_rules,
    without_source,
)
from pipediag.session.edits import Edit, Insert, SetModel, SetOptions, SetParameters
from pipediag.session.findings import SourceExcerpt
from pipediag.session.model import HotLine, Session
from pipediag.session.trials import REFUSED_TOGETHER, Combined, DroppedEdit, Trial
from tests.encoding.poisoned import CLEAN, session_content
from tests.factories import (
    make_finding,
    make_host,
    make_keras,
    make_loop,
    make_session,
    make_verdict,
)
from tests.ledgers import make_gain
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


def test_the_lines_around(tmp_path: Path) -> None:
    found = excerpt(tmp_path, TEXT.encode())
    assert found.line - found.first_line == LINES_AROUND
    assert found.lines == ["# 6", "# 7", "# 8", "ds = ds.map(f).batch(2)", "fit(ds)", ""]


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
    made = session(tmp_path / "train.py").but(
        pipeline=make_pipeline(ops=[op], bottleneck_op_id="map_0"), host=make_host(hot_python=[hot])
    )
    found = with_excerpt(made, LATER).verdict
    assert found.source is not None
    assert found.python_source == SourceExcerpt(
        file=str(helper),
        line=2,
        first_line=1,
        lines=["def f(x):", "    sleep(1)", "    return x", ""],
    )


def test_a_file_that_was_changed_since_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(TEXT, encoding="utf-8")
    assert with_excerpt(session(file), 0.0).verdict.source is None
    assert with_excerpt(session(tmp_path / "gone.py"), LATER).verdict.source is None


CACHE = Edit("cache", "a cache", (Insert("map", "cache", {"elements": 3}),))
CALLS = Edit("calls", "four calls", (SetParameters("map", {"num_parallel_calls": 4}),))


def trial(state: Any) -> Trial:
    return Trial(state=state, reason=None)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text("ds = ds.map(f)\nds = ds.batch(2)\n", encoding="utf-8")
    return file


def tried_session(script: Path, *states: tuple[Edit, str], **overrides: Any) -> Session:
    ops = [
        make_operation("map", "map", file=str(script), line=1, code="ds = ds.map(f)"),
        make_operation("batch", "batch", file=str(script), line=2, parent_ids=["map"]),
    ]
    findings = [make_finding(edit=edit, trial=trial(state)) for edit, state in states]
    pipeline = make_pipeline(ops=ops, bottleneck_op_id=None)
    return make_session(**{"pipeline": pipeline, "findings": findings, **overrides})


def test_confirmed_edits_are_one_patch_and_each_is_its_own(script: Path) -> None:
    found = with_patches(tried_session(script, (CALLS, "confirmed"), (CACHE, "confirmed")), LATER)
    assert found.patch.edits == ["calls", "cache"]
    added = [line for line in found.patch.diff.split("\n") if line.startswith("+ds")]
    assert added == ["+ds = ds.map(f, num_parallel_calls=4)", "+ds = ds.cache()"]
    assert [one.patch.edits for one in found.findings if one.patch] == [["calls"], ["cache"]]


def without_calls(*findings: str) -> Combined:
    dropped = [DroppedEdit(edit=CALLS.id, reason="It added nothing.")]
    return Combined(speedup=2.1, ci95=(1.9, 2.3), findings=list(findings), dropped=dropped)


def test_where_no_other_edit_helped_the_patch_is_what_the_report_names_first(script: Path) -> None:
    alone = without_calls(CACHE.id)
    tried = tried_session(script, (CALLS, "confirmed"), (CACHE, "confirmed"), combined=alone)
    patch = with_patches(tried, LATER).patch
    assert patch.edits == [CALLS.id]


def test_what_is_for_the_user_to_decide_is_written_where_its_rule_is_named(script: Path) -> None:
    """It was left out of the combination untried, which says nothing against it."""
    tried = tried_session(script, (CALLS, "confirmed"))
    if_same = make_finding(
        rule="missing-cache", edit=CACHE, trial=trial("confirmed"), condition="if it stays the same"
    )
    dropped = [DroppedEdit(edit=CACHE.id, reason="Only if it stays the same.")]
    alone = Combined(speedup=2.1, ci95=(1.9, 2.3), findings=[CALLS.id], dropped=dropped)
    tried = tried.but(findings=[*tried.findings, if_same], combined=alone)
    found = with_patches(tried, LATER)
    assert (found.patch.edits, [one.edit for one in found.patch.left_out]) == (["calls"], ["cache"])
    assert with_rules(found, ["missing-cache"]).patch.edits == ["calls", "cache"]


@pytest.mark.parametrize("together", [True, False])
def test_what_was_left_out_for_lack_of_time_is_written_where_its_rule_is_named(
    script: Path, together: bool
) -> None:
    tried = tried_session(script, (CALLS, "confirmed"))
    cache = make_finding(rule="missing-cache", edit=CACHE, trial=trial("confirmed"))
    reason = "No time left." if together else f"{REFUSED_TOGETHER}: a and b."
    dropped = [DroppedEdit(edit=CACHE.id, reason=reason)]
    combined = Combined(speedup=2.1, ci95=(1.9, 2.3), findings=[CALLS.id], dropped=dropped)
    found = with_patches(tried.but(findings=[*tried.findings, cache], combined=combined), LATER)
    assert found.patch.edits == [CALLS.id]
    assert [one.reason for one in found.patch.left_out] == [reason] * together
    assert ("--with missing-cache" in briefs(found)[0].no_patch) is together
    if together:
        assert with_rules(found, ["missing-cache"]).patch.edits == [CALLS.id, CACHE.id]
    else:
        with pytest.raises(PipediagError):
            with_rules(found, ["missing-cache"])


def test_what_is_named_goes_before_what_contradicts_it(script: Path) -> None:
    fused, lazy = (
        Edit(f"embedding-update{id}", id, (SetModel({"optimizer": how}),))
        for id, how in ((":fused", "fused"), ("", "row_wise"))
    )
    script.write_text("import keras\nmodel.compile('adam', 'mse')\nmodel.fit(ds)\n", "utf-8")
    tried = tried_session(script, (fused, "confirmed"))
    keras = make_keras(optimizer="Adam", compile_file=str(script), compile_line=2)
    loop = make_loop(file=str(script), keras=keras)
    rule = "embedding-update"
    both = [
        make_finding(rule=rule, edit=fused, trial=trial("confirmed")),
        make_finding(
            rule=rule,
            edit=lazy,
            trial=trial("confirmed"),
            effect_on_results="changes a hyper-parameter",
        ),
    ]
    dropped = [DroppedEdit(edit=lazy.id, reason="Retune it.")]
    alone = Combined(speedup=2.1, ci95=(1.9, 2.3), findings=[fused.id], dropped=dropped)
    found = with_patches(tried.but(findings=both, combined=alone, loops=[loop]), LATER)
    assert found.patch.edits == [fused.id]
    assert with_rules(found, [rule]).patch.edits == [lazy.id]


def test_what_was_tried_on_top_of_others_is_written_with_them_alone(script: Path) -> None:
    on_top = make_finding(edit=CACHE, trial=trial("confirmed").but(on_top_of=[CALLS.id]))
    both = Combined(speedup=2.1, ci95=(1.9, 2.3), findings=[CALLS.id, CACHE.id])
    tried = tried_session(script, (CALLS, "confirmed"), combined=both)
    tried = tried.but(findings=[*tried.findings, on_top])
    assert with_patches(tried, LATER).patch.edits == [CALLS.id, CACHE.id]
    # The run gains nothing by what it is on top of.
    costly = [one.but(for_run=make_gain(0.9)) for one in tried.findings[:1]]
    found = with_patches(tried.but(findings=[*costly, on_top]), LATER)
    assert found.patch.edits == []


TWIN = replace(CALLS, id="twin")
OTHER = Edit("options", "as many threads", (SetOptions({"threading.private_threadpool_size": 2}),))


@pytest.mark.parametrize("members", [(CACHE.id,), (CACHE.id, OTHER.id)])
def test_what_helped_nothing_is_left_out_as_the_same_change_of_another_finding(
    script: Path, members: tuple[str, ...]
) -> None:
    edits = [CALLS, TWIN, *(one for one in (CACHE, OTHER) if one.id in members)]
    confirmed = [(edit, "confirmed") for edit in edits]
    tried = tried_session(script, *confirmed, combined=without_calls(*members))
    alone = len(members) == 1
    found = {one.edit.id for one in confirmed_findings(tried)}
    assert found == ({CALLS.id, TWIN.id} if alone else set(members))


def test_the_same_change_of_two_findings_is_promised_once(script: Path) -> None:
    gain = make_gain(2.0)
    combined = Combined(speedup=2.0, ci95=(1.9, 2.1), findings=[TWIN.id], for_run=gain)
    tried = tried_session(script, (CALLS, "confirmed"), (TWIN, "confirmed"), combined=combined)
    tried = tried.but(findings=[one.but(for_run=gain) for one in tried.findings])
    found = with_patches(tried, LATER)
    assert found.patch.edits == [CALLS.id, TWIN.id]
    assert promised(found) == gain
    assert promised(found.but(combined=None)) == gain


def test_what_can_be_written_takes_the_place_of_those_that_can_not(script: Path) -> None:
    by_hand = [
        Edit(name, name, (SetModel({"dtype_policy": "mixed_bfloat16"}),))
        for name in ("skipped", "other")
    ]
    alone = without_calls("skipped", "other")
    confirmed = [(edit, "confirmed") for edit in (*by_hand, CALLS)]
    patch = with_patches(tried_session(script, *confirmed, combined=alone), LATER).patch
    assert patch.edits == [CALLS.id]
    without = with_patches(tried_session(script, *confirmed[:2], combined=alone), LATER).patch
    assert without.diff is None
    assert [one.edit for one in without.left_out] == ["skipped", "other"]


def test_what_was_not_confirmed_is_in_no_patch_of_all(script: Path) -> None:
    given = ((CALLS, "inconclusive"), (CACHE, "refuted"))
    found = with_patches(tried_session(script, *given), LATER)
    assert found.patch is None
    assert [one.patch is not None for one in found.findings] == [True, False]


def test_a_file_that_was_changed_meanwhile_is_left_alone(script: Path) -> None:
    found = with_patches(tried_session(script, (CALLS, "confirmed")), script.stat().st_mtime - 1)
    assert found.patch.diff is None
    assert "was changed while it was measured" in found.patch.left_out[0].reason


def test_a_fault_of_ours_is_said_in_place_of_the_patch(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(source_files, "make_patch", fails)
    found = with_patches(tried_session(script, (CALLS, "confirmed")), LATER)
    assert "ZeroDivisionError" in found.patch.left_out[0].reason


def test_no_field_keeps_code_without_the_source() -> None:
    def code(held: Session) -> set[str]:
        return set(re.findall(r'"code":("[^"]*"|null)', held.model_dump_json()))

    filled = Session.model_validate(session_content(CLEAN))
    assert code(filled) == {f'"{CLEAN}"'}
    assert code(without_source(filled)) == {"null"}


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


def test_what_is_no_report_is_not_moved(tmp_path: Path) -> None:
    """A directory of the reports of several scripts, or workers, is nobody's report."""
    (tmp_path / "reports/train").mkdir(parents=True)
    (tmp_path / "reports/train/session.json").write_text("old")
    with pytest.raises(PipediagError, match="holds no pipediag report"):
        prepare_output(tmp_path / "reports")


def test_a_file_in_the_way_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    with pytest.raises(PipediagError, match="cannot write to the output directory"):
        prepare_output(tmp_path / "file/report", force=False)
    with pytest.raises(PipediagError, match="cannot write to the output directory"):
        prepare_output(tmp_path / "file", force=False)


@pytest.mark.parametrize("inside", [".", "below"])
def test_an_earlier_report_around_the_working_directory_stays_where_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, inside: str
) -> None:
    report = tmp_path / "report"
    (report / inside).mkdir(parents=True)
    prepare_output(report, force=True).release()
    monkeypatch.chdir(report / inside)
    with pytest.raises(PipediagError, match="--force"):
        prepare_output(report, force=False)
    assert _names(tmp_path) == {"report"}
    prepare_output(report, force=True).release()


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


def test_a_directory_that_is_being_written_to_is_refused(tmp_path: Path) -> None:
    first = prepare_output(tmp_path / "report", force=False)

    for force in (False, True):
        with pytest.raises(PipediagError, match="another analysis is writing to"):
            prepare_output(tmp_path / "report", force=force)
    assert _names(tmp_path) == {"report"}

    first.release()
    assert prepare_output(tmp_path / "report", force=False).kept_aside is not None
