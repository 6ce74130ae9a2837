"""How TensorFlow runs steps, with its modules played in the shapes that versions have had."""

from __future__ import annotations

import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from pipediag.capture.frameworks.tensorflow.at_exit import remove_cut_caches
from pipediag.capture.frameworks.tensorflow.framework import TensorFlowHooks
from pipediag.capture.frameworks.tensorflow.runtime import (
    CallCancellation,
    TensorFlowRuntime,
    batch_bytes,
)
from pipediag.capture.guard import Guard
from pipediag.capture.watching.updates import UpdateWatch
from pipediag.session.recording import RecordedOperation


def test_of_many_large_batches_none_is_taken_ahead_of_its_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    nest: Any = ModuleType("tensorflow.python.util.nest")
    nest.flatten = lambda spec, **_: [spec]
    monkeypatch.setitem(sys.modules, nest.__name__, nest)
    shape = SimpleNamespace(rank=3, as_list=lambda: [None, 224, 224])
    images = SimpleNamespace(shape=shape, dtype=SimpleNamespace(size=4))
    runtime = TensorFlowRuntime()

    assert batch_bytes(images) == 1024 * 224 * 224 * 4
    assert "2 batches" in str(runtime.not_handed_once(None, images, 2))


class Manager:
    cancelled = False

    def start_cancel(self) -> None:
        self.cancelled = True


@pytest.mark.parametrize("active", [None, Manager()])
def test_a_call_is_cancelled_unless_the_script_does_so_itself(
    monkeypatch: pytest.MonkeyPatch, active: Manager | None
) -> None:
    entered: list[Manager] = []
    package: Any = ModuleType("eager")
    package.cancellation = SimpleNamespace(
        CancellationManager=Manager,
        CancellationManagerContext=lambda one: entered.append(one) or nullcontext(),
        context=lambda: active,
    )
    monkeypatch.setitem(sys.modules, "tensorflow.python.eager", package)
    cancellation = CallCancellation()
    if active is None:
        with cancellation.context:
            cancellation.start()

    assert (cancellation.lack is None, cancellation.started) == (active is None, active is None)
    assert [manager.cancelled for manager in entered] == [True] * (active is None)


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

    assert TensorFlowRuntime().other_processes() == told


def test_a_tensorflow_before_2_17_has_no_models(monkeypatch: pytest.MonkeyPatch) -> None:
    operations: Any = ModuleType("tensorflow.python.ops.gen_experimental_dataset_ops")
    monkeypatch.setitem(sys.modules, operations.__name__, operations)
    assert TensorFlowRuntime().no_models is not None

    operations.iterator_get_model_proto = None
    assert TensorFlowRuntime().no_models is None


PROGRAM = """
import time
import tensorflow as tf
from pipediag.capture.frameworks.tensorflow.runtime import DeviceClock

tf.config.set_visible_devices([], "GPU")
print(DeviceClock().settled_ns(7))
tf.random.normal((500, 500)) @ tf.random.normal((500, 500))
before = time.monotonic_ns()
print(DeviceClock(["/device:CPU:0"]).settled_ns(before) > before)
"""


@pytest.mark.tensorflow
def test_work_behind_python_is_waited_for() -> None:
    said = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120
    )
    assert said.stdout.split() == ["7", "True"]


FILES = ("kept_0.lockfile", "kept_0.data-00000-of-00001", "kept_0.data-00000-of-00001.tempstate12",
         "kept_0.index", "kept_notes.txt", "kept_0.lockfile_of_mine.txt ")  # fmt: skip


@pytest.mark.parametrize(
    ("names", "left"),
    [
        (FILES, {"kept_notes.txt", "kept_0.lockfile_of_mine.txt "}),
        (("kept_0.lockfile", "kept.index"), {"kept_0.lockfile", "kept.index"}),
    ],
)
def test_what_was_written_of_a_cut_cache_goes_and_nothing_else(
    tmp_path: Path, names: tuple[str, ...], left: set[str]
) -> None:
    for name in names:
        (tmp_path / name).write_text("x")
    file = {"filename": str(tmp_path / "kept")}
    remove_cut_caches([RecordedOperation("op1", "cache", "op1", None, None, parameters=file)], 0.0)
    assert {path.name for path in tmp_path.iterdir()} == left


class Base:
    trainable = True
    dtype = SimpleNamespace(is_floating=True)

    def assign(self, value: int) -> int:
        return value


class Resource(Base):
    pass


def test_writes_that_tensorflow_has_put_around_those_of_the_class_are_seen() -> None:
    """As its operations on weak tensors do with `ResourceVariable`, once they are imported."""
    originals = Base.assign
    Resource.assign = originals  # type: ignore[method-assign]
    updates = UpdateWatch()
    hooks: Any = SimpleNamespace(_with=SimpleNamespace(updates=updates), _guard=Guard(print))
    module = SimpleNamespace(BaseResourceVariable=Base, ResourceVariable=Resource)
    TensorFlowHooks._on_variables(hooks, module)

    assert Resource().assign(3) == 3
    assert updates.updated
