"""What counts as a patch: made anew from the script that was measured, and from no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import patches
from pipediag.session.model import Session
from pipediag.session.patches import Patch, PatchedFile
from tests import factories
from tests.records import make_operation, make_pipeline
from tests.reporters import trial_sessions

SOURCE = "import tensorflow as tf\n\nds = tf.data.Dataset.range(9)\nds = ds.map(f)\nfit(ds)\n"


def session(line: int = 4, **overrides: object) -> Session:
    ops = [
        make_operation("range_0", "range", file="train.py", line=3),
        make_operation("map_0", "map", file="train.py", line=line, parent_ids=["range_0"]),
    ]
    finding = factories.make_finding(
        edit=trial_sessions.PARALLEL, trial=trial_sessions.CONFIRMED, line=line
    )
    return factories.make_session(
        **{"findings": [finding], "pipeline": make_pipeline(ops=ops), **overrides}
    )


def test_a_confirmed_edit_is_made_a_patch_and_what_has_no_place_gets_a_reason() -> None:
    (found,) = patches.outcomes(session(), SOURCE.encode())
    assert found == patches.Outcome("train", "parallel-map", None)
    (found,) = patches.outcomes(session(line=5), SOURCE.encode())
    assert found.reason


def test_what_was_not_confirmed_does_not_count() -> None:
    refuted = factories.make_finding(
        edit=trial_sessions.PARALLEL, trial=trial_sessions.REFUTED, line=4
    )
    assert list(patches.outcomes(session(findings=[refuted]), SOURCE.encode())) == []


def test_a_script_that_was_edited_since_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "train.py").write_text(SOURCE, encoding="utf-8")
    monkeypatch.setattr(patches, "FOLDERS", (tmp_path,))
    assert patches.measured_source(session()) == SOURCE.encode()
    other = Patch(files=[PatchedFile(path="train.py", sha256="0" * 64)])
    assert patches.measured_source(session(patch=other)) is None


def test_the_table_gives_the_share_and_the_reasons() -> None:
    found = [
        patches.Outcome("a", "missing-cache", None),
        patches.Outcome("b", "batch-callback", "Only you know."),
    ]
    text = patches.table(found, ["c"])
    assert "1 of 2 confirmed edits (50 %) of 2 scripts" in text
    assert "| `b` | `batch-callback` | Only you know. |" in text
    assert "the goal is 80 %" in text
    assert "left out: c." in text
