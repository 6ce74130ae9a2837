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
    """Why there is no such environment here, as a sentence."""


def interpreter(environment: Environment, folder: Path = FOLDER) -> Path:
    """The Python of that environment, which is made where it is not there yet.

    Raises:
        NotMadeError: no such Python was found, or no index serves the packages.
    """
    return _made(folder / environment.name, environment.python, environment.requirements)


def lowest_interpreter() -> Path:
    """The Python of the environment with the lowest versions that pyproject.toml allows.

    Raises:
        NotMadeError: as for `interpreter`.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    [tensorflow] = extras["tensorflow"]
    options = ["--resolution", "lowest-direct", tensorflow.replace("tensorflow", "tensorflow-cpu")]
    return _made(LOWEST, project["requires-python"].removeprefix(">="), options)


def _made(home: Path, version: str, asked: Sequence[str]) -> Path:
    stamp, wanted = home / ".made-from", _digest(version, asked)
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
    for candidate in [sys.executable, *filter(None, found)]:
        if _version_of(str(candidate)) == version:
            return str(candidate)
    return None


def _version_of(python: str) -> str | None:
    ask = "import sys; print('%d.%d' % sys.version_info[:2])"
    done = subprocess.run([python, "-c", ask], capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else None


def _digest(version: str, asked: Sequence[str]) -> str:
    """Return a digest that changes with what is asked for and with the project's requirements."""
    content = "\n".join([version, *asked]).encode() + (ROOT / "pyproject.toml").read_bytes()
    return hashlib.sha256(content).hexdigest()


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


QUICK_SAMPLES = (
    "blocking_numpy_function",
    "single_call_map",
    "batched_map",
    "host_overhead",
    "eager_fit",
    "batch_callback",
    "large_table_adam",
    "eager_loop",
    "tf_function_iterator",
    "in_graph_loop",
    "train_on_batch",
)
"""They take seconds, and between them have each form of loop, both frameworks' edits, and a near
miss."""
BRIEF_SAMPLES = (
    "blocking_numpy_function",
    "eager_loop",
    "tf_function_iterator",
    "in_graph_loop",
    "train_on_batch",
)
"""One of each form of loop, one with a trial: what continuous integration has time for."""


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


def samples_for(asked: str) -> Sequence[str]:
    """All quick ones where versions are asked for by name, or all of them."""
    return QUICK_SAMPLES if asked else BRIEF_SAMPLES


def chosen(asked: str) -> Sequence[Environment]:
    """The oldest and the newest for "", each for "all", else those that are named, by commas.

    Raises:
        ValueError: a name is of no environment.
    """
    if asked == "all":
        return MATRIX
    if not asked:
        return MATRIX[0], MATRIX[-1]
    by_name = {environment.name: environment for environment in MATRIX}
    names = asked.split(",")
    if unknown := [name for name in names if name not in by_name]:
        raise ValueError(f"no environments: {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[name] for name in names]
