"""Commands, reports and the library with the lowest versions that pyproject.toml allows."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent

import pytest

from pipediag.cli.main import COMMANDS
from pipediag.reporters import REPORTERS
from pipediag.session.store import save_session
from tests.factories import make_session

from . import environments
from .environments import NotMadeError, lowest_interpreter

LIMIT_S = 240
Run = Callable[..., "subprocess.CompletedProcess[str]"]

PROGRAM = """
    import keras, numpy as np, pipediag, tensorflow as tf

    model = keras.Sequential([keras.layers.Dense(1, input_shape=(4,))])
    model.compile("sgd", "mse")
    x = np.zeros((800, 4), "float32")
    dataset = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8)
    pipediag.analyze(dataset, model, epochs=20, budget=0).save("analyzed")
"""


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Run the lowest Python in a directory whose modules must not be taken for others."""
    try:
        python = lowest_interpreter()
    except NotMadeError as reason:
        pytest.skip(str(reason))
    for name in ("json", "click", "pydantic"):
        (tmp_path / f"{name}.py").write_text("raise ImportError('the one in the directory')")

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(python), *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )

    return run


@pytest.mark.timeout(environments.LIMIT_S)
@pytest.mark.parametrize("command", COMMANDS)
def test_help(run: Run, command: str) -> None:
    done = run("-m", "pipediag", command, "--help")

    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: pipediag {command}" in done.stdout


def test_every_report_of_a_recorded_session(run: Run, tmp_path: Path) -> None:
    save_session(make_session(), tmp_path / "session.json")

    _write_every_report(run, "session.json")


@pytest.mark.timeout(LIMIT_S)
def test_a_model_is_analyzed_from_python_and_reported(run: Run, tmp_path: Path) -> None:
    program = tmp_path / "apart" / "program.py"
    program.parent.mkdir()
    program.write_text(dedent(PROGRAM))
    done = run(str(program))

    assert done.returncode == 0, done.stderr[-4000:]
    _write_every_report(run, "analyzed")


def _write_every_report(run: Run, session: str) -> None:
    formats = [word for name in REPORTERS for word in ("--format", name)]
    reports = run("-m", "pipediag", "show", session, *formats, "-o", "all")
    shown = run("-m", "pipediag", "show", session)

    assert reports.returncode == 0, reports.stderr
    assert reports.stderr.count("wrote ") >= len(REPORTERS)
    assert shown.returncode == 0, shown.stderr
