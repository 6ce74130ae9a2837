from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipediag.trace.files import read
from pipediag.trace.steps.splitting import AnnotatedSteps, annotated_steps
from tests.trace.builder import TraceBuilder
from tests.trace.step_profiles import add_annotations


def found(builder: TraceBuilder, directory: Path) -> AnnotatedSteps:
    steps = annotated_steps(builder.events(directory))
    assert steps is not None
    return steps


@pytest.mark.parametrize("name", ["Profiled batch", "train", "TraceContext", "my step"])
def test_whatever_has_a_step_number_is_a_step(name: str, tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    line.event(name, 100, 250, step_num=12).event(name, 300, 390, step_num=13)
    steps = found(builder, tmp_path)
    assert steps.windows.tolist() == [[100, 250], [300, 390]]
    assert steps.numbers == (12, 13)


@pytest.mark.parametrize(("name", "count"), [("train", 2), ("test_step", 2), ("predict", 0)])
def test_a_root_without_a_number_is_known_by_its_name(
    name: str, count: int, tmp_path: Path
) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event(name, 0, 10, _r=1).event(name, 10, 30, _r=1)
    steps = annotated_steps(builder.events(tmp_path))
    assert (0 if steps is None else len(steps.windows)) == count
    assert steps is None or steps.numbers == (0, 1)


def test_a_name_alone_is_no_annotation(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.host().line("python").event("train", 0, 10).event("train", 10, 30)
    assert annotated_steps(builder.events(tmp_path)) is None


def test_one_annotation_is_no_step(tmp_path: Path) -> None:
    builder = TraceBuilder()
    add_annotations(builder.host().line("python"), "train", (0, 1000))
    assert annotated_steps(builder.events(tmp_path)) is None


def test_the_annotation_with_most_steps_is_taken(tmp_path: Path) -> None:
    builder = TraceBuilder()
    host = builder.host()
    line = host.line("python")
    add_annotations(line, "epoch", (0, 500), (500, 1000))
    add_annotations(line, "batch", (10, 90), (110, 190), (510, 590))
    add_annotations(host.line("evaluator"), "test", (0, 400), (400, 900))
    assert found(builder, tmp_path).windows.tolist() == [[10, 90], [110, 190], [510, 590]]


def test_of_two_that_nest_the_outer_one_is_taken(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    add_annotations(line, "Profiled batch", (10, 90), (110, 190))
    add_annotations(line, "train", (0, 95), (100, 195))
    assert found(builder, tmp_path).windows.tolist() == [[0, 95], [100, 195]]


def test_steps_within_steps_count_once(tmp_path: Path) -> None:
    builder = TraceBuilder()
    line = builder.host().line("python")
    # Four times "inner", but all within one of the same name: that leaves one.
    add_annotations(line, "inner", (0, 900), (10, 20), (30, 40), (50, 60))
    add_annotations(line, "train", (0, 400), (0, 400), (400, 900))
    steps = found(builder, tmp_path)
    assert steps.windows.tolist() == [[0, 400], [400, 900]]
    assert steps.numbers == (1, 3)


def test_a_step_that_ends_late_is_cut_at_the_next_start(tmp_path: Path) -> None:
    builder = TraceBuilder()
    add_annotations(builder.host().line("python"), "train", (0, 110), (100, 200), (250, 300))
    assert found(builder, tmp_path).windows.tolist() == [[0, 100], [100, 200], [250, 300]]


def test_kinetos_steps_are_numbered_by_name(tmp_path: Path) -> None:
    def event(name: str, ts: int, dur: int) -> dict[str, object]:
        category = "user_annotation"
        return {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1}

    path = tmp_path / "rank0.pt.trace.json"
    events = [
        event("PyTorch Profiler (0)", 0, 100),
        event("ProfilerStep#9", 10, 30),
        event("Optimizer.step#SGD.step", 35, 4),
        event("ProfilerStep#10", 42, 30),
    ]
    path.write_text(json.dumps({"traceEvents": events}))
    steps = annotated_steps(read(path))
    assert steps is not None
    assert steps.windows.tolist() == [[10_000, 40_000], [42_000, 72_000]]
    assert steps.numbers == (9, 10)


def test_a_profile_without_a_host_has_none(tmp_path: Path) -> None:
    builder = TraceBuilder()
    builder.plane("/device:GPU:0").line("Stream #1").event("volta_sgemm", 0, 10)
    assert annotated_steps(builder.events(tmp_path)) is None
