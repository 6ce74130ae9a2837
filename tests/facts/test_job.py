"""Which worker a process is, whom the others wait for, and what the terminal says of a job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from pipediag.cli.show import command
from pipediag.errors import PipediagError
from pipediag.facts.job import Job, job_of
from pipediag.session.model import Session
from pipediag.session.store import save_session
from pipediag.session.worker import Worker, worker_of
from tests.factories import make_part, make_run, make_session
from tests.records import (
    make_breakdown,
    make_environment,
    make_operation,
    make_pipeline,
    make_pipeline_ops,
    make_steps,
)

CLUSTER = {"chief": ["a:1"], "worker": ["b:1", "c:1"], "ps": ["d:1"]}


def tf_config(kind: str, index: int, cluster: Mapping[str, list[str]] = CLUSTER) -> dict[str, str]:
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        ({}, None),
        (tf_config("chief", 0), ("chief-0", 0, 3)),
        (tf_config("worker", 1), ("worker-1", 2, 3)),
        (tf_config("ps", 0), ("ps-0", None, 3)),
        (tf_config("worker", 0, {"worker": ["a:1"]}), None),
        ({"TF_CONFIG": "no JSON"}, None),
        ({"TF_CONFIG": "[]"}, None),
        ({"SLURM_PROCID": "3", "SLURM_STEP_NUM_TASKS": "8"}, ("rank-3", 3, 8)),
        # A batch script without `srun` is one process of an allocation of several tasks.
        ({"SLURM_PROCID": "0", "SLURM_NTASKS": "8"}, None),
        ({"RANK": "0", "WORLD_SIZE": "1"}, None),
        ({"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "2"}, ("rank-1", 1, 2)),
    ],
)
def test_which_worker_of_a_job_a_process_is(
    variables: dict[str, str], expected: tuple[str, int | None, int] | None
) -> None:
    found = worker_of(variables)
    assert (found and (found.name, found.rank, found.size)) == expected
    assert found is None or found.servers == ("ps" in variables.get("TF_CONFIG", ""))


def of_worker(rank: int, size: int = 2, step_ms: float = 100.0, **shares: float) -> Session:
    worker = Worker(f"worker-{rank}", rank, size, "TF_CONFIG")
    return make_session(
        environment=make_environment(worker=worker),
        steps=make_steps(mean_ms=step_ms),
        breakdown=make_breakdown(step_ms=step_ms, **shares),
    )


def waits(rank: int, **of: float) -> Session:
    return of_worker(
        rank, input_wait=0.0, device_compute=20.0, collective=75.0, dispatch=5.0, python=0.0, **of
    )


def slow(rank: int, **of: float) -> Session:
    return of_worker(
        rank, input_wait=60.0, device_compute=20.0, collective=15.0, dispatch=5.0, python=0.0, **of
    )


def test_the_worker_whose_own_work_is_longest_is_waited_for() -> None:
    job = job_of([slow(1, size=3), waits(0, size=3), waits(2, size=3)])
    assert [one.worker.rank for one in job.steps] == [0, 1, 2]
    assert job.straggler.worker.name == "worker-1"
    assert job.without_straggler == pytest.approx(100.0 / 40.0)
    assert job.longer_classes(job.straggler) == [("input_wait", pytest.approx(60.0))]
    assert job.missing == 0


@pytest.mark.parametrize(
    "sessions",
    [
        [waits(0), waits(1)],
        # Steps of different lengths: nobody waits for anybody.
        [waits(0), slow(1, step_ms=150.0)],
        [slow(0)],
    ],
)
def test_nobody_is_waited_for(sessions: list[Session]) -> None:
    assert job_of(sessions).straggler is None


def test_workers_that_are_not_there_or_were_not_measured_are_named() -> None:
    unmeasured = waits(1, size=4).but(breakdown=None, breakdown_missing="It was killed.")
    job: Job = job_of([waits(0, size=4), unmeasured])
    assert (job.missing, job.unmeasured) == (2, {"worker-1": "It was killed."})


def test_sessions_of_no_job_are_refused() -> None:
    with pytest.raises(PipediagError, match=r"train\.py"):
        job_of([make_session()])
    with pytest.raises(PipediagError, match="Two sessions"):
        job_of([waits(0), waits(0)])


def test_a_worker_that_evaluates_alone_is_named() -> None:
    evaluates = make_run(parts=[make_part("steps", 12.0), make_part("evaluation", 8.0)])
    alone = waits(0).but(run=evaluates)
    job = job_of([alone, waits(1).but(run=make_run())])
    assert job.evaluates_alone.worker.name == "worker-0"
    assert job_of([alone, waits(1).but(run=evaluates)]).evaluates_alone is None


@pytest.mark.parametrize(("batches", "uneven"), [((100, 104), None), ((100, 40), (40, 100))])
def test_uneven_shards_are_named(batches: tuple[int, int], uneven: tuple[int, int] | None) -> None:
    sessions = []
    for rank, count in enumerate(batches):
        ops = [replace(one, cardinality=count) for one in make_pipeline_ops()]
        sessions.append(waits(rank).but(pipeline=make_pipeline(ops=ops)))
    assert job_of(sessions).uneven_batches == uneven


def with_ops(rank: int, *kinds: str) -> Session:
    ops = [
        make_operation(f"op{n}", kind, parent_ids=[f"op{n - 1}"] if n else [])
        for n, kind in enumerate(kinds)
    ]
    return waits(rank).but(pipeline=make_pipeline(ops=ops))


@pytest.mark.parametrize(
    ("kinds", "sharding"),
    [
        (("range", "map", "batch"), "none"),
        (("range", "shard", "map", "batch"), "before the work"),
        # TensorFlow appends it where there are too few files to share out.
        (("range", "map", "batch", "prefetch", "rebatch", "shard"), "behind the work"),
    ],
)
def test_where_all_workers_take_their_parts_of_the_data(
    kinds: tuple[str, ...], sharding: str
) -> None:
    assert job_of([with_ops(rank, *kinds) for rank in range(2)]).sharding == sharding


def test_show_summarises_the_directory_of_a_job(tmp_path: Path) -> None:
    for session in (waits(0), slow(1)):
        directory = tmp_path / session.environment.worker.name
        directory.mkdir()
        save_session(session, directory)
    by_directory = CliRunner().invoke(command, [str(tmp_path)])
    assert by_directory.exit_code == 0
    assert "worker-1" in by_directory.output.splitlines()[0]
    each = CliRunner().invoke(command, [str(tmp_path / "worker-0"), str(tmp_path / "worker-1")])
    assert each.output == by_directory.output
    assert len(each.output.splitlines()) < 20
    assert CliRunner().invoke(command, [str(tmp_path), "--format", "csv"]).exit_code != 0
