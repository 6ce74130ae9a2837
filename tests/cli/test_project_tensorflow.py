"""A project of several files, analysed and fixed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from pipediag.errors import ExitStatus
from pipediag.session.model import Session
from pipediag.session.store import load_session
from tests.capture.captured import environment

pytestmark = pytest.mark.tensorflow

RECORDS = 120
FILES = {
    "trainer/__init__.py": "",
    "trainer/data.py": """
        import time
        from pathlib import Path

        import numpy as np
        import tensorflow as tf


        def read(path):
            time.sleep(0.004)
            return np.load(path.decode())


        def parsed(path):
            return tf.ensure_shape(tf.numpy_function(read, [path], tf.float32), [16])


        def training_data(folder, batch_size):
            files = sorted(str(path) for path in Path(folder).glob("*.npy"))
            dataset = tf.data.Dataset.from_tensor_slices(files)
            dataset = dataset.map(parsed)
            dataset = dataset.map(lambda row: (row, tf.reduce_sum(row)))
            return dataset.batch(batch_size)
        """,
    "trainer/model.py": """
        import keras


        def compiled_model(units):
            model = keras.Sequential([keras.layers.Dense(units), keras.layers.Dense(1)])
            model.compile("sgd", "mse")
            return model
        """,
    "trainer/train.py": """
        import argparse

        import keras

        from trainer.data import training_data
        from trainer.model import compiled_model


        def main():
            parser = argparse.ArgumentParser()
            parser.add_argument("--data", default="records")
            parser.add_argument("--epochs", type=int, default=2)
            parser.add_argument("--units", type=int, default=8)
            given = parser.parse_args()
            keras.utils.set_random_seed(7)
            model = compiled_model(given.units)
            model.fit(training_data(given.data, batch_size=4), epochs=given.epochs, verbose=0)
            print("steps", int(model.optimizer.iterations))


        if __name__ == "__main__":
            main()
        """,
    "run.py": """
        from trainer.train import main

        main()
        """,
}


@dataclass(frozen=True)
class Project:
    """A project in a directory of its own, and the report of its analysis."""

    directory: Path

    def python(self, *arguments: str, at: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run Python in the project's directory, or in another one."""
        return subprocess.run(
            [sys.executable, *arguments],
            cwd=at or self.directory,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )

    def analysed(self, *target: str, budget_s: int) -> Session:
        """Analyse the program; return the session."""
        command = ["-m", "pipediag", "analyze", f"--budget={budget_s}", "-o", "report", *target]
        done = self.python(*command)
        assert done.returncode == ExitStatus.DONE, done.stderr
        return load_session(self.directory / "report")

    def fix(self, *options: str, at: Path | None = None) -> subprocess.CompletedProcess[str]:
        """Run `pipediag fix` on the report."""
        report = str(self.directory / "report")
        return self.python("-m", "pipediag", "fix", report, *options, at=at)

    def read(self, name: str) -> str:
        return (self.directory / name).read_text(encoding="utf-8")

    def unchanged_but_for(self, *names: str) -> bool:
        """Return True if the files with these names are the only ones that were changed."""
        changed = {name for name, text in FILES.items() if self.read(name) != dedent(text)}
        return changed == set(names)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    directory = tmp_path / "project"
    for name, text in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(dedent(text), encoding="utf-8")
    (directory / "records").mkdir()
    for number in range(RECORDS):
        np.save(directory / f"records/{number:03}.npy", np.full(16, number, np.float32))
    return Project(directory)


def test_a_module_is_analysed_and_fixed(project: Project, tmp_path: Path) -> None:
    session = project.analysed("-m", "trainer.train", "--epochs", "4", budget_s=40)
    assert session.verdict.bottleneck == "input"
    assert session.patch.diff is not None, session.patch
    assert [Path(file.path).name for file in session.patch.files] == ["data.py"]

    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert project.unchanged_but_for()
    applied = project.fix("--apply", at=elsewhere)
    assert applied.returncode == ExitStatus.DONE, applied.stderr
    assert project.unchanged_but_for("trainer/data.py")
    again = project.fix("--apply", at=elsewhere)
    assert again.returncode == ExitStatus.USAGE
    assert "Traceback" not in again.stderr


def test_a_script_is_fixed_with_an_edit_that_is_right_under_a_condition(project: Project) -> None:
    session = project.analysed("run.py", "--epochs", "4", budget_s=0)
    [cache] = [
        finding for finding in session.findings if finding.rule == "missing-cache" and finding.edit
    ]
    assert cache.condition is not None
    assert session.patch is None or cache.edit.id not in session.patch.edits  # type: ignore[union-attr]

    applied = project.fix("--apply", "--with", "missing-cache")
    assert applied.returncode == ExitStatus.DONE, applied.stderr
    assert project.unchanged_but_for("trainer/data.py")
    assert ".cache()" in project.read("trainer/data.py")
