"""Checks of what the user asks to run, and of its TensorFlow, before anything is started."""

from __future__ import annotations

import stat
import warnings
from importlib.machinery import PathFinder
from pathlib import Path
from pkgutil import get_importer

from pipediag.errors import PipediagError
from pipediag.tensorflow_versions import OLDEST, installed_builds, is_too_old, too_old_sentence


def check_script(path: str) -> None:
    """Refuse what Python could not run: nothing there, not a file, not Python.

    Raises:
        PipediagError: with one sentence that names the file, and the line of a syntax error.
    """
    script = Path(path)
    try:
        mode = script.stat().st_mode
    except OSError as error:
        raise PipediagError(f"cannot run {path}: {error.strerror}.") from error
    if stat.S_ISDIR(mode) or script.suffix in (".zip", ".pyz"):
        _check_importable(path)
    elif stat.S_ISREG(mode):
        _check_syntax(script)
    else:
        raise PipediagError(
            f"cannot run {path}: it is not a regular file. Write the script to a file first, "
            "as it is read more than once."
        )


def _check_importable(path: str) -> None:
    get_importer(path)
    if PathFinder.find_spec("__main__", [path]) is None:
        raise PipediagError(
            f"cannot run {path}: it holds no __main__.py. Name a script, or a module with -m."
        )


def _check_syntax(script: Path) -> None:
    if get_importer(str(script)) is not None:
        return  # a zip file by another name
    try:
        source = script.read_bytes()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(source, str(script), "exec", dont_inherit=True)
    except SyntaxError as error:
        place = f"{script}:{error.lineno}" if error.lineno else str(script)
        raise PipediagError(f"{place}: not valid Python: {error.msg}.") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise PipediagError(f"{script}: not Python source: {error}.") from error
    except OSError as error:
        raise PipediagError(f"cannot read {script}: {error.strerror}.") from error


def check_tensorflow() -> None:
    """Refuse a TensorFlow that can't be measured, where the installer noted which one is there.

    Raises:
        PipediagError: every build that is installed is too old.
    """
    versions = list(installed_builds().values())
    if versions and all(map(is_too_old, versions)):
        oldest = ".".join(map(str, OLDEST))
        raise PipediagError(
            f"{too_old_sentence(versions[0])} The script was not run. Install pipediag beside "
            f"TensorFlow {oldest} or newer."
        )
