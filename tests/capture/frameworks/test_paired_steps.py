"""For which batches a step is tried as a function, and what else is read of the script."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from textwrap import dedent
from types import FrameType, SimpleNamespace

import pytest

from pipediag.capture.frameworks.tensorflow.paired_steps import (
    _made,
    called_again,
    for_any_batch,
)
from pipediag.capture.loops.syntax import script_trees
from pipediag.capture.pipelines.functions import why_not_traced
from pipediag.step_source import step_at
from tests.capture.loops.test_source import told_at_trains

pytestmark = pytest.mark.usefixtures("own_files")

TEXT, IMAGE = (None, None), (None, 28, 28, 1)


@pytest.mark.parametrize(
    ("own", "elements", "expected"),
    [
        ((32, 23), [TEXT, (None,)], [None, None]),
        ((32, 28, 28, 1), [IMAGE, TEXT], [None, 28, 28, 1]),
        ((32, 28, 28, 1), [(32, 28, 28, 1)], [32, 28, 28, 1]),
        ((32, 784), [IMAGE, (None,)], [None, None]),
        ((32, 28, 28, 1), [None], [None] * 4),
        ((32, 28, 28, 1), [], [None] * 4),
        ((32, 20), [(None, 20), TEXT], [None, None]),
        ((), [()], []),
    ],
    ids=[
        "texts", "images", "whole batches", "what is computed of an element", "an unknown rank",
        "no dataset", "one of two parts", "a number",
    ],
)  # fmt: skip
def test_sizes_are_left_out_that_the_dataset_does_not_promise(
    own: tuple[int, ...], elements: list[tuple[int | None, ...] | None], expected: list[int | None]
) -> None:
    assert for_any_batch(own, [own[1:]], elements) == expected


def test_a_size_that_batches_had_otherwise_is_left_out() -> None:
    """Crops of a random size that are as large as the images by chance."""
    assert for_any_batch((8, 28), [(28,), (20,)], [(None, 28)]) == [None, None]


def test_the_scripts_files_are_read_and_no_librarys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "schedule_of_test.py"
    module.write_text("beta = 0.1\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module(module.stem)
    try:
        found = [ast.unparse(one) for one in script_trees()]
    finally:
        del sys.modules[module.stem]
    assert "beta = 0.1" in found
    library = Path(ast.__file__).read_text(encoding="utf-8")
    assert ast.unparse(ast.parse(library)) not in found


STEPS = "def steps():\n    for x in range(9):\n        trains()\n"


@pytest.mark.parametrize(
    ("call", "again"),
    [
        ("for epoch in range(100):\n    steps()\n", True),
        ("while True:\n    steps()\n", True),
        ("def main():\n    steps()\nfor seed in seeds:\n    main()\n", True),
        ("steps()\n", False),
        ("for run in range(1):\n    steps()\n", False),
    ],
)
def test_a_function_that_is_called_in_a_loop_makes_a_trace_each_time(
    tmp_path: Path, call: str, again: bool
) -> None:
    assert told_at_trains(tmp_path, STEPS + call, called_again, seeds=[1, 2]) is again


def test_a_step_of_the_module_itself_is_made_once(tmp_path: Path) -> None:
    source = "for epoch in range(9):\n    trains()\n"
    assert told_at_trains(tmp_path, source, called_again) is False


TRAINER = """
class Trainer:
    def __init__(self):
        self.beta, self.shape, self.best = 0.0, 1, 0.0
    def anneal(self, epoch):
        self.beta = epoch / 10
    def never(self):
        self.shape = 2
    def evaluate(self):
        self.best = self.beta
    def call(self, x):
        return x, self.beta * self.shape
    __call__ = penalty = call
"""
STEP = """
beta, settings, dropout, trainer = 0.0, {{"beta": 0.0}}, Namespace(rate=0.1), Trainer()
optimizers = [Namespace(apply_gradients=trains)]
def begin(epoch):
    trainer.anneal(epoch)
def set_entry(given, epoch):
    given["beta"] = epoch / 10
def set_name(epoch):
    global beta
    beta = epoch / 10
def set_part(layer):
    layer.trainable = True
def read(part=None, given=None):
    return (part and part.beta, given and given["beta"], settings["beta"], beta)
def main():
    weight = 0.0
    def inner():
        return weight
    for epoch in range(2):
        {each}
        for x in [{{"beta": 1.0}}]:
            with tf.GradientTape() as tape:
                loss = {read}
            optimizers[0].apply_gradients(loss)
"""
CALL = "for fold in range(2):\n    begin(0)\n    main()\nbegin(0)\n"
IN_THE_MODULE = "def main():\n"


def kept_by_step(script: str, tmp_path: Path) -> str:
    """Return what a trace would keep of the step in a script that runs."""
    line = next(n for n, one in enumerate(script.splitlines(), 1) if "GradientTape" in one)

    def tells(stack: Iterator[FrameType]) -> str | None:
        source, frame = step_at(script, line), next(stack)
        loop = (frame.f_code.co_filename, source.loop_line)
        return why_not_traced(_made(source, frame), loop)

    tf = SimpleNamespace(GradientTape=nullcontext, shape=lambda _: 1)
    return told_at_trains(tmp_path, script, tells, tf=tf, Namespace=SimpleNamespace) or ""


@pytest.mark.parametrize("in_a_function", [False, True])
@pytest.mark.parametrize(
    ("read", "each", "kept"),
    [
        ("trainer.beta", "trainer.beta = epoch / 10", "`trainer.beta`"),
        ("trainer.beta", "begin(epoch)", "`trainer.beta`"),
        ("trainer.penalty(x)", "trainer.anneal(epoch)", "`self.beta`"),
        ("trainer(x)", "trainer.anneal(epoch)", "`self.beta`"),
        ("read(trainer)", "trainer.anneal(epoch)", "`part.beta`"),
        ("dropout", "dropout.rate = epoch / 10", "`dropout`"),
        ("settings['beta']", "set_entry(settings, epoch)", "`settings['beta']`"),
        ("settings['beta']", "settings.update(beta=epoch)", "`settings`"),
        ("read()", "set_entry(settings, epoch)", "`settings['beta']`"),
        ("read()", "set_name(epoch)", "`beta`"),
        ("beta", "set_name(epoch)", "`beta`"),
        ("inner()", "weight = epoch / 10", "`weight`"),
        ("x", "set_part(trainer)", "`layer.trainable`"),
        ("trainer.beta + trainer.shape + tf.shape(x)", "trainer.evaluate()", ""),
        ("settings['beta'] + weight + beta", "print(settings)", ""),
        ("x['beta']", "set_entry(settings, epoch)", ""),
        ("read(trainer, x)", "trainer.best = epoch", ""),
        ("dropout", "dropout.learning_rate = epoch", ""),
    ],
)
def test_what_other_code_sets_is_not_kept_by_a_step(
    read: str, each: str, kept: str, in_a_function: bool, tmp_path: Path
) -> None:
    step = STEP.format(read=read, each=each)
    if not in_a_function:
        before, _, body = step.partition(IN_THE_MODULE)
        step = before + dedent(body)
    found = kept_by_step(TRAINER + step + CALL * in_a_function + "begin(0)\n", tmp_path)
    assert kept in found if kept else not found


def test_a_function_of_another_file_may_set_what_a_step_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trainer_of_test.py").write_text(TRAINER)
    monkeypatch.syspath_prepend(tmp_path)
    step = STEP.format(read="trainer.beta", each="begin(epoch)")
    try:
        found = kept_by_step(f"from trainer_of_test import Trainer{step}main()\n", tmp_path)
    finally:
        del sys.modules["trainer_of_test"]
    assert "`trainer.beta`" in found
