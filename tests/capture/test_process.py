"""This process and its recording: threads, free memory, processes that train along, the files."""

from __future__ import annotations

import _thread
import json
import os
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from pipediag.capture.capture import FRAMEWORKS as KNOWN
from pipediag.capture.process import EachThread, free_memory_bytes, runs_tf_data, train_along
from pipediag.capture.recorder import Recorder, describe_environment
from pipediag.session.recording import Device, RecordedEnvironment
from tests.capture.instruments import ToyRuntime


class State: ...


def test_each_thread_has_a_state_of_its_own_for_as_long_as_it_lives() -> None:
    states, other = EachThread(State, weakref.WeakSet()), ThreadPoolExecutor(1)
    mine, others = states.here, other.submit(lambda: states.here).result()
    assert states.here is mine
    assert others is not mine
    assert set(states.all()) == {mine, others}
    del others
    other.submit(lambda: None).result()
    other.shutdown()
    assert states.all() == [mine]


def test_a_native_thread_is_not_made_one_of_pythons() -> None:
    found: list[bool] = []
    before = threading.active_count()
    over = threading.Event()

    def run() -> None:
        found.append(runs_tf_data())
        over.set()

    _thread.start_new_thread(run, ())
    assert over.wait(30)
    assert (found, runs_tf_data()) == ([True], False)
    assert threading.active_count() <= before


MEMINFO = "MemTotal:       8000 kB\nMemFree:        100 kB\nMemAvailable:   3000 kB\n"


def write(directory: Path, limit: str) -> tuple[Path, Path]:
    (directory / "meminfo").write_text(MEMINFO, encoding="ascii")
    (directory / "memory.max").write_text(f"{limit}\n", encoding="ascii")
    (directory / "memory.current").write_text("900000\n", encoding="ascii")
    stat = "anon 500000\ninactive_file 300000\n"
    (directory / "memory.stat").write_text(stat, encoding="ascii")
    return directory / "meminfo", directory


@pytest.mark.parametrize(
    ("limit", "free"),
    [
        ("max", 3000 * 1024),
        # Of the limit, 600,000 are in use for good: files that were only read give way.
        ("1000000", 400_000),
        ("500000", 0),
        ("100000000", 3000 * 1024),
    ],
)
def test_the_tighter_limit_counts(tmp_path: Path, limit: str, free: int) -> None:
    assert free_memory_bytes(*write(tmp_path, limit)) == free


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOROVOD_SIZE", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"):
        monkeypatch.delenv(name, raising=False)
    for name in ("horovod", "mpi4py", "torch.distributed", "jax._src.distributed"):
        monkeypatch.delitem(sys.modules, name, raising=False)


def imported(monkeypatch: pytest.MonkeyPatch, name: str, **members: Any) -> None:
    module: Any = SimpleNamespace(**members)
    monkeypatch.setitem(sys.modules, name, module)


def test_what_the_framework_is_connected_to_is_told_as_it_says_so() -> None:
    runtime = ToyRuntime()
    assert train_along(runtime) is None
    runtime.others = "TF_CONFIG names 2 tasks"
    assert runtime.others in (train_along(runtime) or "")


@pytest.mark.parametrize(
    ("package", "variable"), [("horovod", "HOROVOD_SIZE"), ("mpi4py", "OMPI_COMM_WORLD_SIZE")]
)
def test_several_processes_that_exchange_train_together(
    monkeypatch: pytest.MonkeyPatch, package: str, variable: str
) -> None:
    monkeypatch.setenv(variable, "4")
    assert train_along(ToyRuntime()) is None, "a launcher may start what is independent"
    imported(monkeypatch, package)
    assert f"{package} in one of 4 processes" in (train_along(ToyRuntime()) or "")
    for size in ("1", "", "many"):
        monkeypatch.setenv(variable, size)
        assert train_along(ToyRuntime()) is None


@pytest.mark.parametrize(
    ("joined", "size", "alone"), [(False, 2, True), (True, 1, True), (True, 2, False)]
)
def test_a_group_of_torchs_counts_once_it_is_joined(
    monkeypatch: pytest.MonkeyPatch, joined: bool, size: int, alone: bool
) -> None:
    imported(
        monkeypatch,
        "torch.distributed",
        is_available=lambda: True,
        is_initialized=lambda: joined,
        get_world_size=lambda: size,
    )
    assert (train_along(ToyRuntime()) is None) is alone


def full(*_: object, **__: object) -> int:
    raise OSError("no space left on device")


def test_a_full_disk_leaves_the_last_recording_and_the_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "recording.json"
    recorder = Recorder(path)
    recorder.save()
    before = path.read_text()

    monkeypatch.setattr(Path, "write_text", full)
    recorder.save()

    assert path.read_text() == before
    assert list(tmp_path.iterdir()) == [path]
    assert "no space left on device" in recorder.recording.notes[0]


def test_a_value_that_json_lacks_does_not_lose_the_recording(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    for odd in (np.float32(0.5), np.arange(2), object):
        recorder.recording.notes.append(odd)  # type: ignore[arg-type]
    recorder.end("finished")

    saved = json.loads((tmp_path / "recording.json").read_text())
    assert saved["notes"] == [0.5, [0, 1], "<class 'object'>"]


def test_a_last_recording_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    monkeypatch.setattr(Path, "write_text", full)

    with pytest.raises(OSError, match="no space"):
        recorder.end("finished")


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    recorder = Recorder(path)

    child = os.fork()
    if child == 0:
        recorder.end("finished")
        os._exit(0)
    os.waitpid(child, 0)

    assert not path.exists()
    assert recorder.recording.outcome == "running"


DESCRIPTIONS = [framework.describe for framework in KNOWN]
FRAMEWORKS = ("tensorflow", "keras", "tf_keras", "jax", "numpy")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> RecordedEnvironment:
    for name in list(sys.modules):
        if name.split(".")[0] in FRAMEWORKS:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return RecordedEnvironment(python="3.11")


def test_nothing_is_imported_for_it(environment: RecordedEnvironment) -> None:
    describe_environment(environment, DESCRIPTIONS)

    assert environment == RecordedEnvironment(python="3.11")
    assert not any(name in sys.modules for name in FRAMEWORKS)


def test_devices_and_build(
    environment: RecordedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = ["CPU", "CPU", "GPU"]
    devices = [SimpleNamespace(name=f"/{k}:{n}", device_type=k) for n, k in enumerate(kinds)]
    context = SimpleNamespace(_initialized=True, list_logical_devices=lambda: devices)
    imported(
        monkeypatch,
        "tensorflow",
        __version__="2.21.0",
        sysconfig=SimpleNamespace(get_build_info=lambda: {"is_cuda_build": True}),
        config=SimpleNamespace(functions_run_eagerly=lambda: True),
    )
    imported(monkeypatch, "tensorflow.python.eager.context", context=lambda: context)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "1")
    describe_environment(environment, DESCRIPTIONS)

    assert (environment.tensorflow, environment.cuda_build) == ("2.21.0", True)
    assert environment.run_functions_eagerly
    assert not environment.tf_data_debug_mode
    assert environment.devices[2] == Device("/GPU:2", "GPU")
    assert environment.cuda_visible_devices == "1"


@pytest.mark.parametrize(
    ("policy", "mixed"), [("float32", None), ("mixed_bfloat16", "mixed_bfloat16")]
)
def test_keras(
    environment: RecordedEnvironment,
    monkeypatch: pytest.MonkeyPatch,
    policy: str,
    mixed: str | None,
) -> None:
    imported(monkeypatch, "keras", __version__="3.15.1")
    imported(monkeypatch, "jax", __version__="0.6")
    imported(monkeypatch, "keras.src.backend.config", backend=lambda: "jax")
    named = SimpleNamespace(name=policy)
    where = "keras.src.dtype_policies.dtype_policy"
    imported(monkeypatch, where, dtype_policy=lambda: named)
    describe_environment(environment, DESCRIPTIONS)

    found = (environment.keras, environment.keras_backend, environment.jax)
    assert found == ("3.15.1", "jax", "0.6")
    assert environment.mixed_precision == mixed
    assert not environment.legacy_keras
