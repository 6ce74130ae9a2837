"""A project of several files, analysed and fixed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import numpy as np
import pytest

from pipediag.errors import ExitStatus
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
}


def pipediag(at: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pipediag", *arguments],
        cwd=at,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


def changed(project: Path) -> list[str]:
    """Return the names of the files that are no longer as they were written."""
    return [
        name for name, text in FILES.items() if (project / name).read_text("utf-8") != dedent(text)
    ]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    directory = tmp_path / "project"
    for name, text in FILES.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(dedent(text), encoding="utf-8")
    (directory / "records").mkdir()
    for number in range(RECORDS):
        np.save(directory / f"records/{number:03}.npy", np.full(16, number, np.float32))
    return directory


def test_a_module_is_analysed_and_fixed(project: Path, tmp_path: Path) -> None:
    module = ("-m", "trainer.train", "--epochs", "4")
    done = pipediag(project, "analyze", "--budget=40", "-o", "report", *module)
    assert done.returncode == ExitStatus.DONE, done.stderr
    session = load_session(project / "report")
    assert session.verdict.bottleneck == "input"
    assert session.patch.diff is not None, session.patch
    assert [Path(file.path).name for file in session.patch.files] == ["data.py"]
    assert changed(project) == []

    fix = ("fix", str(project / "report"), "--apply")
    applied = pipediag(tmp_path, *fix)
    assert applied.returncode == ExitStatus.DONE, applied.stderr
    assert changed(project) == ["trainer/data.py"]
    again = pipediag(tmp_path, *fix)
    assert again.returncode == ExitStatus.USAGE
    assert "Traceback" not in again.stderr


@pytest.mark.parametrize("run", [["train.py"], ["-m", "trainer.train"]], ids=["script", "module"])
def test_a_patched_program_is_analysed_again_and_one_patch_is_written(
    project: Path, tmp_path: Path, run: list[str]
) -> None:
    text = "from trainer.train import main\n\nmain()\n"
    (project / "train.py").write_text(text, encoding="utf-8")
    done = pipediag(project, "analyze", "--budget=40", "-o", "report", *run, "--epochs", "4")
    assert done.returncode == ExitStatus.DONE, done.stderr
    fixed = pipediag(tmp_path, "fix", str(project / "report"), "--again", "--apply")
    assert fixed.returncode == ExitStatus.DONE, fixed.stderr

    first, second = (load_session(project / name) for name in ("report", "report/again"))
    ran = {Path(op.file) for op in second.ops if op.file is not None}
    assert ran == {project / "report" / "again" / "patched files" / "trainer" / "data.py"}
    # The second one may find that `steps_per_execution` gains, now that steps no longer wait.
    assert "trainer/data.py" in changed(project)
    assert {"trainer/data.py", "trainer/model.py"}.issuperset(changed(project))
    assert (project / "train.py").read_text(encoding="utf-8") == text
    assert "+++ b/trainer/data.py" in fixed.stdout
    of_copies = pipediag(tmp_path, "fix", str(project / "report" / "again"))
    assert of_copies.returncode == ExitStatus.USAGE, of_copies.stderr
    # What the first one confirmed is in the file, whatever the second one adds.
    parallel = (op.parameters.get("num_parallel_calls") for op in second.ops if op.kind == "map")
    cached = (op.kind == "cache" for op in second.ops)
    assert any(parallel) or any(cached), first.patch
