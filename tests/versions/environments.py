"""The environments that samples are run in, and how each is made, with this checkout in it."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv-versions"
LOWEST = ROOT / ".venv-lowest"
LIMIT_S = 300


class NotMadeError(Exception):
    """No such Python was found, or no index serves the packages; a sentence says which."""


def interpreter(environment: Environment, folder: Path = FOLDER) -> Path:
    """The Python of that environment, which is made where it is not there yet."""
    return _made(folder / environment.name, environment.python, environment.requirements)


def lowest_interpreter() -> Path:
    """The Python of the environment with the lowest versions that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    [tensorflow] = extras["tensorflow"]
    options = ["--resolution", "lowest-direct", tensorflow.replace("tensorflow", "tensorflow-cpu")]
    return _made(LOWEST, project["requires-python"].removeprefix(">="), options)


def _made(home: Path, version: str, asked: Sequence[str]) -> Path:
    content = "\n".join([version, *asked]).encode() + (ROOT / "pyproject.toml").read_bytes()
    stamp, wanted = home / ".made-from", hashlib.sha256(content).hexdigest()
    python = home / "bin" / "python"
    if stamp.is_file() and stamp.read_text() == wanted:
        return python
    base = base_python(version)
    if base is None:
        raise NotMadeError(f"There is no Python {version} here.")
    _uv("venv", "--clear", "--python", base, str(home))
    _uv("pip", "install", "--python", str(python), *asked, "-e", str(ROOT))
    stamp.write_text(wanted)
    return python


def base_python(version: str) -> str | None:
    """An interpreter of that version that starts; pyenv's shims are there and start nothing."""
    name = f"python{version}"
    found = [shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/*/bin/{name}"))]
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    for candidate in [sys.executable, *filter(None, found)]:
        command = [str(candidate), "-c", ask]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() == version:
            return str(candidate)
    return None


def _uv(*arguments: str) -> None:
    uv = Path(sys.executable).with_name("uv")
    try:
        done = subprocess.run(
            [uv, *arguments], capture_output=True, text=True, check=False, timeout=LIMIT_S
        )
    except subprocess.TimeoutExpired:
        raise NotMadeError(f"uv {arguments[0]} took longer than {LIMIT_S} s.") from None
    if done.returncode:
        raise NotMadeError(f"uv {arguments[0]} failed: {done.stderr.strip()[-800:]}")


BRIEF_SAMPLES = ("blocking_numpy_function", "eager_loop", "tf_function_iterator", "train_on_batch")
"""One of each form of loop, one with a trial: what continuous integration has time for."""
QUICK_SAMPLES = (
    *BRIEF_SAMPLES,
    *("single_call_map", "batched_map", "host_overhead"),
    *("eager_fit", "batch_callback", "large_table_adam"),
)
"""They take seconds, and between them have both frameworks' edits and a near miss, too."""


@dataclass(frozen=True)
class Environment:
    """One Python with one TensorFlow and its Keras."""

    python: str
    tensorflow: str
    keras: str | None = None
    """None where TensorFlow brings its own."""
    loses: tuple[str, ...] = ()
    """Samples whose verdict hangs on missing gap times, whose trial is of Keras 3 only, or that
    this Keras slows down: in `train_on_batch` 2 makes a dataset in each call and waits for its end
    in one call of three, and 3.0 to 3.6 trace anew in each call."""

    @property
    def name(self) -> str:
        keras = f"-keras{self.keras}" if self.keras else ""
        return f"tf{self.tensorflow}{keras}-py{self.python}"

    @property
    def times_its_pipelines(self) -> bool:
        """Below 2.17 no tf.data tells how long it was waited for, and a verdict may stay open."""
        return tuple(map(int, self.tensorflow.split(".")[:2])) >= (2, 17)

    @property
    def requirements(self) -> list[str]:
        keras = [f"keras=={self.keras}"] if self.keras else []
        return [f"tensorflow-cpu=={self.tensorflow}", *keras]


KERAS_2_LOSES = ("host_overhead", "large_table_adam", "train_on_batch")

MATRIX = (
    Environment("3.10", "2.14.1", loses=KERAS_2_LOSES),
    Environment("3.11", "2.15.1", loses=KERAS_2_LOSES),
    Environment("3.11", "2.16.2", "3.0.5", loses=("host_overhead", "train_on_batch")),
    Environment("3.12", "2.17.1", "3.3.3", loses=("train_on_batch",)),
    Environment("3.10", "2.18.1", "3.5.0", loses=("train_on_batch",)),
    Environment("3.12", "2.20.0"),
    Environment("3.13", "2.21.0"),
)
"""From the oldest to the newest."""


def chosen(asked: str) -> Sequence[Environment]:
    """Each for "all", else the oldest and the newest."""
    return MATRIX if asked == "all" else (MATRIX[0], MATRIX[-1])
