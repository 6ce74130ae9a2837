"""Patches are of the source that was measured, and a fault of theirs costs no session."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pipediag.patching.refusal import NotPatchableError
from pipediag.runner import source_patches
from pipediag.runner.source_patches import (
    as_measured,
    confirmed_edits,
    with_patches,
    without_source,
)
from pipediag.session.edits import Edit, Insert, SetParameters
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from pipediag.session.trials import Combined, DroppedEdit, Trial
from tests.factories import make_finding, make_session
from tests.records import make_operation, make_pipeline

TEXT = "ds = ds.map(f)\nds = ds.batch(2)\n"
CACHE = Edit("cache", "a cache", (Insert("map", "cache", {"elements": 3}),))
CALLS = Edit("calls", "four calls", (SetParameters("map", {"num_parallel_calls": 4}),))
LATER = 4e9
"""A time of day after which nothing was written."""


def trial(state: Any) -> Trial:
    return Trial(state=state, reason=None)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    file = tmp_path / "train.py"
    file.write_text(TEXT, encoding="utf-8")
    return file


def session(script: Path, *states: tuple[Edit, str], **overrides: Any) -> Session:
    ops = [
        make_operation("map", "map", file=str(script), line=1, code="ds = ds.map(f)"),
        make_operation("batch", "batch", file=str(script), line=2, parent_ids=["map"]),
    ]
    findings = [make_finding(edit=edit, trial=trial(state)) for edit, state in states]
    pipeline = make_pipeline(ops=ops, bottleneck_op_id=None)
    return make_session(**{"pipeline": pipeline, "findings": findings, **overrides})


def test_confirmed_edits_are_one_patch_and_each_is_its_own(script: Path) -> None:
    found = with_patches(session(script, (CALLS, "confirmed"), (CACHE, "confirmed")), LATER)
    assert found.patch is not None
    assert found.patch.edits == ["calls", "cache"]
    assert found.patch.diff is not None
    added = [line for line in found.patch.diff.split("\n") if line.startswith("+ds")]
    assert added == ["+ds = ds.map(f, num_parallel_calls=4)", "+ds = ds.cache()"]
    assert [one.patch.edits for one in found.findings if one.patch] == [["calls"], ["cache"]]


def test_what_was_not_confirmed_is_in_no_patch_of_all(script: Path) -> None:
    given = ((CALLS, "inconclusive"), (CACHE, "refuted"))
    found = with_patches(session(script, *given), LATER)
    assert found.patch is None
    assert [one.patch is not None for one in found.findings] == [True, False]


def test_what_does_not_help_beside_the_others_is_left_out(script: Path) -> None:
    combined = Combined(
        findings=["calls"],
        speedup=2.0,
        ci95=None,
        dropped=[DroppedEdit(edit="cache", reason="It adds nothing.")],
    )
    given = session(script, (CALLS, "confirmed"), (CACHE, "confirmed"), combined=combined)
    assert confirmed_edits(given) == [CALLS]


def test_what_the_run_does_not_gain_by_is_left_out_with_what_it_comes_to(script: Path) -> None:
    def gained(speedup: float) -> RunGain:
        return RunGain(
            speedup=speedup,
            before_s=10.0,
            after_s=10.0 / speedup,
            basis="measured",
            scope="run",
        )

    findings = [
        make_finding(edit=edit, trial=trial("confirmed"), for_run=gained(speedup))
        for edit, speedup in ((CALLS, 0.5), (CACHE, 1.25))
    ]
    found = with_patches(session(script, findings=findings), LATER)
    assert found.patch is not None
    assert found.patch.edits == ["cache"]
    (left,) = found.patch.left_out
    assert left.edit == "calls"
    assert left.reason.endswith("the run does not: 0.50x for the run (10.0 s to 20.0 s).")
    # The finding has its own all the same.
    assert [one.patch.edits for one in found.findings if one.patch] == [["calls"], ["cache"]]


@pytest.mark.parametrize(
    ("ci95", "said"),
    [
        ((0.85, 1.2), "by it; whether the run gains is not sure: 0.99x [0.85, 1.20] for the run"),
        ((0.97, 1.0), "by it, the run does not: 0.99x [0.97, 1.00] for the run"),
    ],
)
def test_a_run_that_may_gain_is_not_said_not_to(
    script: Path, ci95: tuple[float, float], said: str
) -> None:
    gain = RunGain(
        speedup=0.99, ci95=ci95, before_s=10.0, after_s=10.1, basis="measured", scope="run"
    )
    finding = make_finding(edit=CALLS, trial=trial("confirmed"), for_run=gain)
    found = with_patches(session(script, findings=[finding]), LATER)
    assert found.patch is not None
    (left,) = found.patch.left_out
    assert said in left.reason


def test_what_is_not_safe_is_left_out(script: Path) -> None:
    unsafe = make_finding(edit=CACHE, trial=trial("confirmed"), effect_on_results="not safe here")
    assert confirmed_edits(session(script, findings=[unsafe])) == []


def test_a_file_that_was_changed_meanwhile_is_left_alone(script: Path) -> None:
    found = with_patches(session(script, (CALLS, "confirmed")), script.stat().st_mtime - 1)
    assert found.patch is not None
    assert found.patch.diff is None
    assert "was changed while it was measured" in found.patch.left_out[0].reason


def test_what_can_not_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(NotPatchableError, match=r"gone\.py can't be read"):
        as_measured(str(tmp_path / "gone.py"), LATER)
    large = tmp_path / "large.py"
    large.write_text("#" * (source_patches.MOST_BYTES + 1), encoding="utf-8")
    os.utime(large, (1, 1))
    with pytest.raises(NotPatchableError, match="too large"):
        as_measured(str(large), LATER)


def test_a_fault_of_ours_is_said_in_place_of_the_patch(
    script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(source_patches, "make_patch", fails)
    found = with_patches(session(script, (CALLS, "confirmed")), LATER)
    assert found.patch is not None
    assert "ZeroDivisionError" in found.patch.left_out[0].reason


def test_a_session_without_source_holds_no_line_of_it(script: Path) -> None:
    found = without_source(session(script, (CALLS, "confirmed")))
    assert found.pipeline is not None
    assert {op.code for op in found.pipeline.ops} == {None}
    assert "ds.map" not in found.model_dump_json()
