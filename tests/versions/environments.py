"""Makes an environment of the matrix, with this checkout in it, once."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

from .matrix import Environment

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
    options = [
        "--resolution",
        "lowest-direct",
        tensorflow.replace("tensorflow", "tensorflow-cpu"),
    ]
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
            [uv, *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
    except subprocess.TimeoutExpired:
        raise NotMadeError(f"uv {arguments[0]} took longer than {LIMIT_S} s.") from None
    if done.returncode:
        raise NotMadeError(f"uv {arguments[0]} failed: {done.stderr.strip()[-800:]}")
