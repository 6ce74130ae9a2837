"""Which changes each arm consists of; nothing is built here."""

from __future__ import annotations

from benchmarks.edit_arms import arm_of, confirmed, guide, proposed, subsets
from pipediag.session.edits import AUTOTUNE, Change, Edit, Insert, SetModel, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.trials import Combined, Trial
from tests.factories import make_finding, make_session
from tests.records import make_operation, make_pipeline

PARALLEL = SetParameters("map_0", {"num_parallel_calls": AUTOTUNE})
CACHE = Insert("map_0", "cache", {"elements": 640})


def finding(rule: str, *changes: Change, state: str = "confirmed", **fields) -> Finding:
    edit = Edit(id=rule, label=rule, changes=changes)
    trial = Trial(state=state, reason=None, speedup=1.5)  # type: ignore[arg-type]
    return make_finding(rule=rule, edit=edit, trial=trial, **fields)


def test_a_guide_sets_every_parallel_call_and_ends_with_a_prefetch() -> None:
    ops = [
        make_operation("op1", "TFRecordDataset", parameters={"file_count": 8}),
        make_operation("op2", "interleave"),
        make_operation("op3", "map", inside_function_of="op2"),
        make_operation("op4", "map"),
        make_operation("op5", "batch"),
        make_operation("tf1", "prefetch", inserted_by_tensorflow=True),
    ]
    arm = guide(make_session(pipeline=make_pipeline(ops=ops)))
    assert arm.changes == (
        SetParameters("op1", {"num_parallel_reads": AUTOTUNE}),
        SetParameters("op2", {"num_parallel_calls": AUTOTUNE}),
        SetParameters("op3", {"num_parallel_calls": AUTOTUNE}),
        SetParameters("op4", {"num_parallel_calls": AUTOTUNE}),
        Insert("op5", "prefetch", {"buffer_size": AUTOTUNE}),
    )


def test_a_guide_keeps_a_prefetch_that_is_there_and_a_single_file_as_it_is() -> None:
    ops = [
        make_operation("op1", "TFRecordDataset", parameters={"file_count": 1}),
        make_operation("op2", "prefetch"),
    ]
    arm = guide(make_session(pipeline=make_pipeline(ops=ops)))
    assert arm.changes == (SetParameters("op2", {"buffer_size": AUTOTUNE}),)


def test_edits_of_the_model_and_of_hyper_parameters_are_left_out() -> None:
    session = make_session(
        findings=[
            finding("parallel-map", PARALLEL),
            finding("host-overhead", SetModel({"steps_per_execution": 16})),
            finding(
                "small-batch",
                SetParameters("batch_0", {"batch_size": 128}),
                effect_on_results="changes a hyper-parameter",
            ),
            finding("missing-cache", CACHE, status="informative"),
        ]
    )
    assert [edit.id for edit in proposed(session)] == ["parallel-map"]


def test_pipediags_arm_is_its_combination() -> None:
    findings = [
        finding("parallel-map", PARALLEL),
        finding("missing-cache", CACHE),
        finding("small-batch", PARALLEL, state="refuted"),
    ]
    session = make_session(findings=findings)
    assert [e.id for e in confirmed(session)] == ["parallel-map", "missing-cache"]
    combined = Combined(findings=["missing-cache"], speedup=2.0, ci95=None)
    session = make_session(findings=findings, combined=combined)
    assert [e.id for e in confirmed(session)] == ["missing-cache"]


def test_a_cache_is_written_as_a_user_writes_it() -> None:
    arm = arm_of("x", [Edit(id="missing-cache", label="", changes=(CACHE, PARALLEL))])
    assert arm.changes == (Insert("map_0", "cache", {}), PARALLEL)


def test_all_subsets_of_at_most_five_edits() -> None:
    edits = [Edit(id=f"e{n}", label="", changes=(PARALLEL,)) for n in range(3)]
    names = [arm.name for arm in subsets(edits)]
    assert names == [
        "as written",
        *("e0", "e1", "e2"),
        *("e0 + e1", "e0 + e2", "e1 + e2"),
        "e0 + e1 + e2",
    ]
    many = [Edit(id=f"e{n}", label="", changes=(PARALLEL,)) for n in range(7)]
    assert len(list(subsets(many))) == 32
