"""The recording and its journal on disk, and what is told of the environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from pipediag.capture.frameworks.hooking import FRAMEWORKS as KNOWN
from pipediag.capture.recorder import Recorder, describe_environment
from pipediag.session.reading import read_journal, read_recording
from pipediag.session.recording import Device, RecordedEnvironment


def test_a_saved_recording_can_be_read(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    recorder.note("Something was odd.")
    recorder.save()

    read = read_recording(tmp_path / "recording.json")
    assert read == recorder.recording
    assert read.outcome == "running"


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


def test_a_last_recording_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder(tmp_path / "recording.json")
    monkeypatch.setattr(Path, "write_text", full)

    with pytest.raises(OSError, match="no space"):
        recorder.end("finished", 0, None)


def test_a_forked_child_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "recording.json"
    recorder = Recorder(path)

    child = os.fork()
    if child == 0:
        recorder.end("finished", 0, None)
        os._exit(0)
    os.waitpid(child, 0)

    assert not path.exists()
    assert recorder.recording.outcome == "running"


KILLED = """
import os, signal, sys
from pathlib import Path
from pipediag.capture.recorder import open_journal
journal = open_journal(Path(sys.argv[1]))
for step in range(3):
    journal.append(0, 1, 100 + step, 10, 4, 1)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_steps_outlive_a_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "steps.journal"
    checkout = Path(__file__).parents[2]

    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(path)],
        env={**os.environ, "PYTHONPATH": str(checkout)},
        check=False,
    )

    assert done.returncode == -signal.SIGKILL
    assert read_journal(path).tolist() == [[0, 1, 100 + step, 10, 4, 1] for step in range(3)]


DESCRIPTIONS = [framework.describe for framework in KNOWN]
FRAMEWORKS = ("tensorflow", "keras", "tf_keras", "jax", "numpy")


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> RecordedEnvironment:
    for name in list(sys.modules):
        if name.split(".")[0] in FRAMEWORKS:
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return RecordedEnvironment(python="3.11")


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, **facts: object) -> None:
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(**facts))


def pretend_tensorflow(monkeypatch: pytest.MonkeyPatch, initialised: bool, cuda: bool) -> None:
    def logical_devices() -> list[SimpleNamespace]:
        assert initialised, "asking would initialise the runtime"
        kinds = ["CPU", "CPU", "GPU"]
        return [SimpleNamespace(name=f"/{k}:{n}", device_type=k) for n, k in enumerate(kinds)]

    context = SimpleNamespace(_initialized=initialised, list_logical_devices=logical_devices)
    pretend(
        monkeypatch,
        "tensorflow",
        __version__="2.21.0",
        sysconfig=SimpleNamespace(get_build_info=lambda: {"is_cuda_build": cuda}),
        config=SimpleNamespace(functions_run_eagerly=lambda: True),
    )
    pretend(monkeypatch, "tensorflow.python.eager.context", context=lambda: context)


def test_nothing_is_imported_for_it(environment: RecordedEnvironment) -> None:
    describe_environment(environment, DESCRIPTIONS)

    assert environment == RecordedEnvironment(python="3.11")
    assert not any(name in sys.modules for name in FRAMEWORKS)


def test_devices_and_build(
    environment: RecordedEnvironment, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_tensorflow(monkeypatch, initialised=True, cuda=True)
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
    pretend(monkeypatch, "keras", __version__="3.15.1")
    pretend(monkeypatch, "jax", __version__="0.6")
    pretend(monkeypatch, "keras.src.backend.config", backend=lambda: "jax")
    pretend(
        monkeypatch,
        "keras.src.dtype_policies.dtype_policy",
        dtype_policy=lambda: SimpleNamespace(name=policy),
    )
    describe_environment(environment, DESCRIPTIONS)

    assert (environment.keras, environment.keras_backend, environment.jax) == (
        "3.15.1",
        "jax",
        "0.6",
    )
    assert environment.mixed_precision == mixed
    assert not environment.legacy_keras
