from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pipediag.session.table_bench import (
    BenchPlan,
    BenchTable,
    NotTimed,
    Placed,
    Round,
    TableKey,
    result_line,
    results_in,
)

TABLE = BenchTable("ids.npz", 10, 4, "float32", True, ["sgd"], [], "Adam", {"use_ema": True}, 2)


def test_a_plan_comes_back_as_it_was_written(tmp_path: Path) -> None:
    plan = BenchPlan([TABLE], 60.0, 10, "results.jsonl", "directory")
    plan.write(tmp_path / "plan.json")

    assert BenchPlan.read(tmp_path / "plan.json") == plan


def test_results_of_a_process_that_was_killed_are_read_as_far_as_they_go(tmp_path: Path) -> None:
    told = [Placed(0, "CPU", 8), Round(0, "sgd", "step", 6.0, 1.0), NotTimed(1, None, "No.")]
    file = tmp_path / "results.jsonl"
    file.write_text("".join(map(result_line, told)) + result_line(told[0])[:-9], encoding="utf-8")

    assert list(results_in(file)) == told
    assert list(results_in(tmp_path / "none.jsonl")) == []


def test_each_table_has_a_file_of_its_own_whatever_its_layer_is_called() -> None:
    key = TableKey("a/../b", "a/embeddings", 10, 4)
    others = [replace(key, layer="b"), replace(key, variable=None), replace(key, rows=11)]

    assert len({one.ids_file for one in (key, *others)}) == 4
    assert "/" not in key.ids_file
    assert TableKey("a/../b", "a/embeddings", 10, 4).ids_file == key.ids_file
