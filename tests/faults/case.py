"""A script run natively and under pipediag, each in a folder of its own, to compare the facts."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from pipediag.session.model import Session
from tests.capture.captured import environment

LIMIT_S = 180
FACT = "FACT "
"""A line of a script's output that begins so must be the same natively and under pipediag."""


@dataclass(frozen=True)
class Run:
    """What is left of one run of a script."""

    directory: Path
    status: int
    stdout: str
    stderr: str
    report: Path

    @property
    def facts(self) -> list[str]:
        return [line for line in self.stdout.splitlines() if line.startswith(FACT)]

    @cached_property
    def files(self) -> dict[str, str]:
        """Digests of the files in the working folder, by relative path; bytecode is left out."""
        return {
            str(path.relative_to(self.directory)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(self.directory.rglob("*"))
            if path.is_file() and "__pycache__" not in path.parts
        }

    @cached_property
    def session(self) -> Session:
        text = (self.report / "session.json").read_text(encoding="utf-8")
        return Session.model_validate_json(text)


@dataclass(frozen=True)
class Case:
    """A script, the files beside it, and how it is called."""

    root: Path
    files: Mapping[str, str]
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)

    def natively(self, *, again_in: Run | None = None) -> Run:
        """Run it without pipediag, in a new folder or in the one that another run has left."""
        return self._run("native", [sys.executable], again_in)

    def analysed(self, *options: str, again_in: Run | None = None) -> Run:
        """Run it under `pipediag analyze` with these options."""
        report = str(self.root / "report")
        own = ["-m", "pipediag", "analyze", "--force", "-o", report, *options]
        return self._run("analysed", [sys.executable, *own], again_in)

    def alike(self, *options: str, facts: int = 0) -> Run:
        """Return the analysed run, whose status and facts are the native ones."""
        native, analysed = self.natively(), self.analysed(*options)
        assert native.facts, native.stderr
        assert not facts or len(native.facts) == facts, native.stderr
        assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
        return analysed

    def _run(self, name: str, command: list[str], again_in: Run | None) -> Run:
        directory = self.root / name if again_in is None else again_in.directory
        if again_in is None:
            directory.mkdir()
            for path, text in self.files.items():
                (directory / path).parent.mkdir(parents=True, exist_ok=True)
                (directory / path).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [*command, "main.py", *self.arguments],
            cwd=directory,
            env=environment(**self.variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            timeout=LIMIT_S,
            check=False,
        )
        return Run(directory, done.returncode, done.stdout, done.stderr, self.root / "report")


# What scripts import whose `fit` waits for its pipeline long enough to be tried on.
HELPERS = """
    import hashlib
    import os
    import random
    import time

    import keras
    import numpy as np
    import tensorflow as tf

    keras.utils.set_random_seed(7)
    x = np.random.rand(600, 16).astype("float32")
    y = x.sum(1)

    def waits(row):
        time.sleep(0.001)
        return row

    def slowly(dataset, function=waits):
        def read(row, label):
            return tf.ensure_shape(tf.numpy_function(function, [row], tf.float32), [16]), label
        return dataset.map(read)

    def mlp(**compiled):
        dropout = keras.layers.Dropout(0.3)
        model = keras.Sequential([keras.layers.Dense(8), dropout, keras.layers.Dense(1)])
        model.compile(**({"optimizer": "adam", "loss": "mse"} | compiled))
        return model

    def digest(model):
        weights = b"".join(np.ascontiguousarray(w).tobytes() for w in model.get_weights())
        return hashlib.sha256(weights).hexdigest(), int(model.optimizer.iterations)

    def tell(model, history):
        print("FACT losses", history.history)
        print("FACT weights", *digest(model))
        print("FACT draws", np.random.rand(), random.random(), float(tf.random.uniform([])))
"""
