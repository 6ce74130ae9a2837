from __future__ import annotations

import json
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.cluster import other_tasks

HOSTS = ["a:1", "b:1"]


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TF_CONFIG", raising=False)
    monkeypatch.delitem(sys.modules, "tensorflow.python.eager.context", raising=False)


@pytest.mark.parametrize(
    ("cluster", "task", "told"),
    [
        ({"worker": HOSTS}, "worker", "TF_CONFIG names 2 tasks"),
        ({"chief": HOSTS[:1], "ps": HOSTS}, "chief", "TF_CONFIG names 3 tasks"),
        ({"worker": HOSTS[:1]}, "worker", None),
        ({"worker": HOSTS[:1], "evaluator": HOSTS[1:]}, "worker", None),
        ({"worker": HOSTS}, "evaluator", None),
        ({}, "worker", None),
    ],
)
def test_tasks_that_train_are_counted(
    monkeypatch: pytest.MonkeyPatch, cluster: dict[str, list[str]], task: str, told: str | None
) -> None:
    config = {"cluster": cluster, "task": {"type": task, "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))

    assert other_tasks() == told


@pytest.mark.parametrize("text", ["", "not JSON", "[]", '{"cluster": 3}', '{"cluster": {"ps": 1}}'])
def test_what_is_no_such_configuration_names_none(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("TF_CONFIG", text)
    assert other_tasks() is None


@pytest.mark.parametrize("known_by", ["_server_def", "_collective_ops_server_def"])
@pytest.mark.parametrize(
    ("jobs", "told"), [((1,), None), ((1, 2), "TensorFlow is connected to a cluster of 3 tasks")]
)
def test_a_cluster_counts_however_the_script_came_to_know_it(
    monkeypatch: pytest.MonkeyPatch, known_by: str, jobs: tuple[int, ...], told: str | None
) -> None:
    job = [SimpleNamespace(tasks=dict.fromkeys(range(count), "host:1")) for count in jobs]
    server = SimpleNamespace(cluster=SimpleNamespace(job=job))
    context = {"_server_def": None, "_collective_ops_server_def": None, known_by: server}
    module: Any = SimpleNamespace(context=lambda: SimpleNamespace(**context))
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager.context", module)

    assert other_tasks() == told
