"""Functions of a script that make a step eagerly, and whether a trace of them would do the same."""

from __future__ import annotations

import random
from collections import deque
from contextlib import nullcontext
from pathlib import Path
from textwrap import dedent, indent
from types import SimpleNamespace

import numpy as np
import pytest

from pipediag.capture.watching.updates import note_eager_step
from pipediag.session.recorded_loops import EagerStep
from tests.capture.instruments import training_loop

pytestmark = pytest.mark.usefixtures("own_files")


def steps_of(source: str, tmp_path: Path, *, from_python: bool = False) -> list[EagerStep]:
    """Return what is found where a script calls `apply`, and its loop is at the marked line."""
    script, source = tmp_path / "train.py", dedent(source)
    script.write_text(source, encoding="utf-8")
    line = next(n for n, one in enumerate(source.splitlines(), 1) if one.endswith("# loop"))
    record = training_loop(file=str(script), line=line, from_python=from_python).record
    names = {
        "np": np,
        "random": random,
        "deque": deque,
        "tf": SimpleNamespace(GradientTape=nullcontext),
        "Model": type("Model", (), {"rate": property(lambda _: 0.1, lambda *_: None)}),
        "data": [np.zeros(2)] * 2,
        "apply": lambda *_: note_eager_step(record),
        "__name__": "__main__",
    }
    exec(compile(source, str(script), "exec"), names)
    return record.eager_steps


IN_A_CLASS = """
    class Trainer:
        def __init__(self):
            self.weight, self.rng, self.model = 0.0, np.random.default_rng(1), None
            self.noise, self.rows = np.zeros(2), deque()
            self.prepare()

        def prepare(self):
            self.model = Model()

        def penalty(self, x):
            return x {helper}

        def train_step(self, x):
            with tf.GradientTape():
                loss = self.penalty(x) {step}
            apply(loss)
            return loss

        def fit(self):
            order = self.rng.permutation(2)
            for epoch in range(2):
                {epoch}
                for x in data:  # loop
                    self.train_step(x)

    Trainer().fit()
"""


@pytest.mark.parametrize(
    ("step", "helper", "epoch", "why"),
    [
        ("", "", "self.weight = epoch / 2", None),
        ("+ self.weight", "", "pass", None),
        ("+ (self.model is None)", "", "pass", None),
        ("+ self.weight", "", "self.weight = epoch / 2", "`self.weight`"),
        ("", "* self.weight", "self.weight = epoch / 2", "`self.weight`"),
        ("", "+ len(self.rows)", "self.rows.append(epoch)", "`self.rows`"),
        ("+ (self.model is None)", "", "self.model = Model()", "`self.model`"),
        ("+ self.rng.normal()", "", "pass", "`rng`"),
        ("", "+ np.random.normal()", "pass", "`numpy.random.normal`"),
        ("+ random.random()", "", "pass", "`random.random`"),
        ("+ bool(print(x))", "", "pass", "`print`"),
        ("+ x.numpy() if self.rows else 0", "", "pass", "`.numpy()`"),
        ("", "+ len(x.numpy() if self.rows else x)", "pass", "`.numpy()`"),
        ("+ callable(lambda y: y.numpy())", "", "pass", None),
        ("+ next(self.rows) if self.rows else 0", "", "pass", "`next`"),
        ("+ next(iter(x))", "+ next(one for one in x)", "pass", None),
        ("+ next(iter(x))", "+ next(x) if self.rows else 0", "pass", "`next`"),
    ],
)
def test_a_method_that_a_trace_would_change(
    step: str, helper: str, epoch: str, why: str | None, tmp_path: Path
) -> None:
    source = IN_A_CLASS.format(step=step, helper=helper, epoch=epoch)
    (found,) = steps_of(source, tmp_path)
    assert found.function == "Trainer.train_step"
    assert (found.lacking is None) if why is None else why in (found.lacking or "")


IN_A_MODULE = """
    rng, settings, weight = np.random.default_rng(1), {{"weight": 0.0}}, 0.0
    model = Model()
    rate = weight
    rate = 0.1
    noise = rng.normal(size=2)

    def decay():
        global rate
        rate = rate / 2

    def train_step(x):
        with tf.GradientTape():
            loss = x {step}
        apply(loss)
        return loss

    def fold():
        for x in data:  # loop
            loss = train_step(x)

    for weight_of_fold in range(2):
        {fold}
        fold()
    loss, noise = 0.0, 1.0
    {behind}
"""


@pytest.mark.parametrize(
    ("step", "fold", "behind", "why"),
    [
        ("+ weight + settings['weight'] + noise", "pass", "pass", None),
        ("+ (model is None)", "pass", "model = Model(); model.name = 1", None),
        ("+ (model is None)", "model = Model()", "pass", "`model`"),
        ("+ (model is None)", "pass", "model = Model()\n    fold()", "`model`"),
        ("+ weight", "weight = weight_of_fold / 2", "pass", "`weight`"),
        ("+ settings['weight']", "settings['weight'] = 1.0", "pass", "`settings['weight']`"),
        ("+ rate", "decay()", "pass", "`rate`"),
        ("+ rate", "pass", "pass", None),
        ("+ rng.normal()", "pass", "pass", "`rng`"),
        ("", "model.trainable = False", "pass", "`model.trainable`"),
        ("", "pass", "model.trainable = True\n    fold()", "`model.trainable`"),
        ("", "pass", "model.trainable = True", None),
        ("+ bool(model.rate)", "model.rate = 0.1", "pass", None),
        ("+ sum(weight for weight in x)", "weight = weight_of_fold / 2", "pass", None),
    ],
)
def test_a_function_that_a_trace_would_change(
    step: str, fold: str, behind: str, why: str | None, tmp_path: Path
) -> None:
    source = IN_A_MODULE.format(step=step, fold=fold, behind=behind)
    (found,) = steps_of(source, tmp_path)
    assert (found.lacking is None) if why is None else why in (found.lacking or "")


@pytest.mark.parametrize(("inside", "why"), [("beta = epoch / 2", "`beta`"), ("pass", None)])
def test_a_function_that_closes_over_what_is_set_again(
    inside: str, why: str | None, tmp_path: Path
) -> None:
    source = f"""
        def main(fold):
            beta, model = 0.0, Model()

            def train_step(x):
                with tf.GradientTape():
                    loss = x * beta + (model is None)
                apply(loss)

            for epoch in range(2):
                {inside}
                for x in data:  # loop
                    train_step(x)

        for fold in range(2):
            main(fold)
    """
    (found,) = steps_of(source, tmp_path)
    assert (found.lacking is None) if why is None else why in (found.lacking or "")


SET_UP = """
    settings, shift = {{}}, None

    class Other:
        def prepare(self):
            self.classes = 1

    class Trainer:
        def __init__(self):
            self.load()

        def load(self):
            global shift
            self.classes, settings["n"], shift = 10, 3, 0.5
            self.more()

        def more(self):
            self.classes = 11

        def train_step(self, x):
            with tf.GradientTape():
                apply(x / self.classes + settings["n"] + shift)

        def fit(self):
            {fit}
            for x in data:  # loop
                {body}
                self.train_step(x)

    trainer = Trainer()
    Other().prepare()
    for epoch in range(2):
        {epoch}
    {call}
    trainer.fit()
"""


@pytest.mark.parametrize(
    ("fit", "body", "epoch", "call", "why"),
    [
        ("pass", "pass", "pass", "trainer.load()", None),
        ("self.load()", "pass", "pass", "pass", None),
        ("pass", "self.load()", "pass", "pass", "`shift`"),
        ("pass", "self.more()", "pass", "pass", "`self.classes`"),
        ("pass", "pass", "trainer.fit(); trainer.load()", "pass", "`shift`"),
        ("pass", "pass", "pass", "trainer.fit()\n    trainer.load()", "`shift`"),
        ("reload = self.load", "reload()", "pass", "pass", "`shift`"),
        ("self.classes = 12", "pass", "pass", "trainer.fit()", None),
        ("self.classes = 12", "pass", "trainer.fit()", "pass", "`self.classes`"),
        ("self.load()", "pass", "trainer.fit()", "pass", "`shift`"),
        ("pass", "Other().prepare()", "pass", "pass", "`self.classes`"),
    ],
)
def test_what_functions_set_whose_calls_are_over_is_kept(
    fit: str, body: str, epoch: str, call: str, why: str | None, tmp_path: Path
) -> None:
    source = SET_UP.format(fit=fit, body=body, epoch=epoch, call=call)
    (found,) = steps_of(source, tmp_path)
    assert (found.lacking is None) if why is None else why in (found.lacking or "")


KEEPS = """
    class Attention:
        def __init__(self):
            self.scores_kept = 0.0

        def call(self, x):
            {attention}
            return x

        __call__ = call

    class Net:
        def __init__(self):
            self.attention = Attention()

        def call(self, x):
            {net}
            return x

        __call__ = call

    net, attention = Net(), Attention()

    def train_step(x):
        with tf.GradientTape():
            apply(net(x))

    for x in data:  # loop
        train_step(x)
    {behind}
"""


@pytest.mark.parametrize(
    ("attention", "net", "behind", "why"),
    [
        ("self.scores_kept = x", "x = self.attention(x)", "pass", None),
        (
            "self.scores_kept = x; x = 1",
            "self.attention(x)\nx = self.size_kept = x",
            "pass",
            None,
        ),
        ("self.size_kept = x\nx = x + self.size_kept", "x = self.attention(x)", "pass", None),
        (
            "self.scores_kept = x",
            "x = self.attention(x)\nself.size_kept = self.attention.scores_kept",
            "pass",
            None,
        ),
        (
            "self.scores_kept = x",
            "x = self.attention(x)",
            "print(net.attention.scores_kept)",
            "`self`",
        ),
        ("self.scores_kept = self.scores_kept + x", "x = self.attention(x)", "pass", "`self`"),
        ("self.scores_kept += x", "x = self.attention(x)", "pass", "`self`"),
        (
            "x = x + self.scores_kept\nself.scores_kept = x",
            "self.attention(x)",
            "pass",
            "`self`",
        ),
        (
            "if len(x): self.size_kept = x\nx = self.size_kept",
            "self.attention(x)",
            "pass",
            "`self`",
        ),
        (
            "self.scores_kept = x",
            "self.size_kept = self.attention.scores_kept\nself.attention(x)",
            "pass",
            "`self`",
        ),
        ("attention.scores_kept = x", "x = self.attention(x)", "pass", "`attention`"),
    ],
)
def test_what_a_layer_sets_for_itself_is_made_by_each_trace(
    attention: str, net: str, behind: str, why: str | None, tmp_path: Path
) -> None:
    source = KEEPS.format(
        attention=indent(attention, " " * 12).strip(),
        net=indent(net, " " * 12).strip(),
        behind=behind,
    )
    (found,) = steps_of(source, tmp_path)
    assert (found.lacking is None) if why is None else why in (found.lacking or "")


IN_ANOTHER_FILE = """
    class Base:
        pass

    class Trainer:
        beta, model, rows = 0.0, Base(), []

        def train_step(self, x):
            with tf.GradientTape():
                apply(x * self.beta + len(self.rows) + (self.model is None))

        def train_epoch(self, data):
            for x in data:
                self.train_step(x)
"""


@pytest.mark.parametrize(
    ("before", "inside", "behind", "why"),
    [
        ("trainer.beta = 0.1", "pass", "pass", None),
        ("pass", "trainer.beta = epoch / 3", "pass", "`self.beta`"),
        ("pass", "trainer.rows.append(epoch)", "pass", "`self.rows`"),
        ("pass", "self.model = Model()", "pass", None),
        ("pass", "pass", "net.trainable = True\ntrainer.train_epoch(data)", "`net.trainable`"),
    ],
)
def test_another_file_may_set_what_a_step_reads(
    before: str, inside: str, behind: str, why: str | None, tmp_path: Path
) -> None:
    library = tmp_path / "trainer.py"
    library.write_text(dedent(IN_ANOTHER_FILE), encoding="utf-8")
    source = f"""
        from pathlib import Path
        exec(compile(Path({str(library)!r}).read_text("utf-8"), {str(library)!r}, "exec"))
        trainer, net, self = Trainer(), Base(), Base()
        {before}
        for epoch in range(2):
            {inside}
            trainer.train_epoch(data)  # loop
        {indent(behind, " " * 8).strip()}
    """
    (found,) = steps_of(source, tmp_path)
    assert (found.lacking is None) if why is None else why in (found.lacking or "")


CALLED_WITH = """
    class Trainer:
        def train_step(self, x, model, rate=0.1, training=True):
            with tf.GradientTape():
                loss = x * rate
            apply(loss)
            return loss

    trainer, model, other, epoch = Trainer(), Model(), Model(), 0

    def fit(model, rate, data):
        for x in data:  # loop
            {call}

    for epoch in range(2):
        rate = 0.1 / (1 + epoch)
        {outer}
"""


@pytest.mark.parametrize(
    ("call", "outer", "why"),
    [
        ("trainer.train_step(x, model, rate)", "fit(model, 0.1, data)", None),
        ("trainer.train_step(x, model, training=True)", "fit(model, rate, data)", None),
        ("trainer.train_step(x, [x], rate=0.2)", "fit(model, rate, data)", None),
        ("trainer.train_step(x, None, np.float32(rate))", "fit(model, rate, data)", None),
        ("trainer.train_step(x, model, rate)", "fit(model, rate, data)", "`rate`"),
        ("trainer.train_step(x, model, 2 * epoch)", "fit(model, rate, data)", "`rate`"),
        (
            "trainer.train_step(x, model); trainer.train_step(x, other)",
            "fit(model, rate, data)",
            "`model`",
        ),
        ("trainer.train_step(x, model)", "model = Model(); fit(model, rate, data)", "`model`"),
        ("trainer.train_step(x, model)", "fit(model, 0, data); fit(other, 0, data)", "`model`"),
    ],
)
def test_a_function_that_each_other_argument_would_trace(
    call: str, outer: str, why: str | None, tmp_path: Path
) -> None:
    (found,) = steps_of(CALLED_WITH.format(call=call, outer=outer), tmp_path)
    assert (found.lacking is None) if why is None else why in (found.lacking or "")


MADE_BY_THE_CALLER = """
    def train_step(x, model, rate):
        with tf.GradientTape():
            apply(x * rate)

    def make():
        return Model()

    def run(number):
        {inner}
        model, rate = {made}
        for x in data:  # loop
            {step}(x, model, rate)

    given = Model()

    def main():
        run(1)
        {again}

    {main}
"""


@pytest.mark.parametrize(
    ("made", "again", "main", "own", "why"),
    [
        ("make(), 0.1", "pass", "main()", False, None),
        ("make(), 0.1", "[run(one) for one in range(2)]", "main()", False, "`model`"),
        ("make(), 0.1", "pass", "for _ in range(2): main()", False, "`model`"),
        ("make(), 0.1", "run(2)", "main()", False, "`model`"),
        ("make(), 0.1", "run(2)", "main()", True, None),
        ("given, 0.1", "run(2)", "main()", False, None),
    ],
)
def test_what_the_caller_makes_is_another_one_when_it_is_called_again(
    made: str, again: str, main: str, own: bool, why: str | None, tmp_path: Path
) -> None:
    step = "train" if own else "train_step"
    inner = """
        def train(x, model, rate):
            with tf.GradientTape():
                apply(x * rate)
    """
    inner = indent(dedent(inner), " " * 8).strip() if own else "pass"
    source = MADE_BY_THE_CALLER.format(made=made, again=again, main=main, step=step, inner=inner)
    (found,) = steps_of(source, tmp_path)
    assert (found.lacking is None) if why is None else why in (found.lacking or "")


NAMED_ALIKE = """
    class Runner:
        def update(self, x, rate):
            with tf.GradientTape():
                apply(x * rate)

    class Other:
        def update(self, x, rate=None):
            return x

    class Both:
        runner, other = Runner(), Other()

    def prepare():
        local = Other()
        local.update(1, 2)

    runner, second, other, both, seen, rate = Runner(), Runner(), Other(), Both, dict(), 0.1
    for x in data:  # loop
        {call}
        {rest}
"""


@pytest.mark.parametrize(
    ("call", "rest", "why"),
    [
        ("runner.update(x, rate)", "other.update(3, 4)", None),
        ("runner.update(x, rate)", "seen.update({}, rate=1)", None),
        ("both.runner.update(x, rate)", "both.other.update(3, 4)", None),
        ("both.runner.update(x, rate)", "second.update(x, 0.2)", "`rate`"),
        ("[runner][0].update(x, rate)", "other.update(3, 4)", None),
        ("[runner][0].update(x, rate)", "[runner][0].update(x, 0.2)", "`rate`"),
    ],
)
def test_calls_of_another_function_with_its_name_do_not_count(
    call: str, rest: str, why: str | None, tmp_path: Path
) -> None:
    (found,) = steps_of(NAMED_ALIKE.format(call=call, rest=rest), tmp_path)
    assert (found.lacking is None) if why is None else why in (found.lacking or "")


SPLIT = """
    def grad(x, rate=0.1):
        with tf.GradientTape():
            return x
    def step(x):
        with tf.GradientTape():
            apply(x)
    def critic(x):
        for _ in range(2):
            with tf.GradientTape():
                apply(x)
    class Agent:
        def gradients(self):
            with tf.GradientTape():
                return 0
        def learn(self):
            x = self.gradients()
            apply(x){fed}
    def main(it):
        for number in range(2):{inline}
            x = next(it)
            {body}
    it = iter(data * 2){made}
    main(it)
"""
LOOP = "  # loop"


@pytest.mark.parametrize(
    ("body", "loop", "from_python", "functions"),
    [
        ("step(x)", "inline", False, ["step"]),
        ("step(x); critic(x)", "inline", False, ["step", "critic"]),
        ("step(x)", "made", False, ["step"]),
        ("apply(grad(x))", "inline", False, ["grad"]),
        ("apply(grad(x))", "made", False, ["grad"]),
        ("Agent().learn()", "inline", False, ["Agent.learn"]),
        ("Agent().learn()", "fed", True, ["Agent.learn"]),
        ("with tf.GradientTape(): apply(x)", "inline", False, []),
        ("with tf.GradientTape(): apply(x)", "made", False, []),
        ("with tf.GradientTape(): apply(x)", "made", True, []),
        ("apply(x)", "inline", False, []),
    ],
)
def test_the_functions_of_steps(
    body: str, loop: str, from_python: bool, functions: list[str], tmp_path: Path
) -> None:
    marks = {"inline": "", "made": "", "fed": "", loop: LOOP}
    found = steps_of(SPLIT.format(body=body, **marks), tmp_path, from_python=from_python)
    assert [one.function for one in found] == functions


@pytest.mark.parametrize(("rate", "why"), [("", None), (", number", "`rate`"), (", 0.1", None)])
def test_arguments_of_a_function_that_computes_the_gradients_for_the_loop(
    rate: str, why: str | None, tmp_path: Path
) -> None:
    source = SPLIT.format(body=f"apply(grad(x{rate}))", inline=LOOP, made="", fed="")
    (found,) = steps_of(source, tmp_path)
    assert (found.lacking is None) if why is None else why in (found.lacking or "")
