"""Steps in a loop's body, as functions."""

from __future__ import annotations

from textwrap import dedent, indent

import pytest

from pipediag.step_source import NotAFunctionError, StepSource, step_at

LOOP = """\
for x, y in data:
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x))
    grads = tape.gradient(loss, model.weights)
    optimizer.apply_gradients(zip(grads, model.weights))
"""
STEP = """\
def step({parameters}):
    with tf.GradientTape() as tape:
        loss = loss_of(y, model(x))
    grads = tape.gradient(loss, model.weights)
    optimizer.apply_gradients(zip(grads, model.weights))
"""


def _step(text: str) -> StepSource:
    lines = text.splitlines()
    line = next(place for place, one in enumerate(lines, 1) if "GradientTape" in one)
    return step_at(text, line)


def _rewritten(text: str, **given: object) -> str:
    """Return the source with the step as a function, as the patch writes it."""
    step, lines = _step(text), text.splitlines()
    numbers = given.get("numbers", ())
    assert isinstance(numbers, tuple)
    return "\n".join(
        [
            *lines[: step.loop_line - 1],
            *step.definition("step"),
            *lines[step.loop_line - 1 : step.first - 1],
            *step.use("step", numbers),
            *lines[step.last :],
            "",
        ]
    )


def test_what_the_loop_sets_is_given_and_what_others_read_is_returned() -> None:
    assert (
        _rewritten(LOOP) == STEP.format(parameters="y, x") + "for x, y in data:\n    step(y, x)\n"
    )
    read = _rewritten(LOOP + "    total = total + loss\nprint(grads)\n")
    assert "    return loss, grads\n" in read
    assert "    loss, grads = step(y, x)\n    total = total + loss\n" in read


APPLY = "    optimizer.apply_gradients(zip(grads, model.weights))\n"


@pytest.mark.parametrize(
    "update",
    [
        "optimizer.apply(grads, model.weights)",
        "optimizer.apply(grads, trainable_variables=model.weights)",
        "optimizer.minimize(loss, model.weights, tape=tape)",
    ],
)
def test_a_step_may_end_with_another_way_to_update(update: str) -> None:
    text = LOOP.replace(APPLY, f"    {update}\n") + "    total += loss\n"
    assert _rewritten(text).endswith("    loss = step(y, x)\n    total += loss\n")


@pytest.mark.parametrize(
    "update", ["table.apply(scale)", "loss = table.apply(loss, 1)", "minimize(loss, x)"]
)
def test_what_is_called_alike_updates_nothing(update: str) -> None:
    inner = LOOP.replace("    grads =", f"        {update}\n    grads =")
    for text in (inner.replace(APPLY, ""), LOOP.replace(APPLY, "    table.apply(scale)\n")):
        with pytest.raises(NotAFunctionError, match="follows the tape"):
            _step(text)


def test_a_metric_of_an_object_is_updated_in_the_step() -> None:
    line = "    self.train_loss(loss)\n"
    text = LOOP.replace("optimizer.", "self.optimizer.").replace("    self", f"{line}    self", 1)
    assert "    self.train_loss(loss)\n" in _rewritten(text).partition("for x, y")[0]
    assert _step(text).metrics == ("self.train_loss",)


def test_in_a_function_its_other_names_are_constants() -> None:
    step = _step(
        "def train(self, data, model):\n"
        + "".join(
            f"    {line}\n" for line in LOOP.replace("optimizer", "self.optimizer").splitlines()
        )
    )
    assert step.parameters == ("y", "x")
    assert {"model", "self"} <= {*step.constants}
    assert step.loop_line == 2


def test_a_schedule_goes_before_the_step_and_a_look_at_the_loss_follows_it() -> None:
    text = LOOP.replace(
        "    grads =",
        "        print(count, loss.numpy())\n    rate.assign(schedule(count))\n    grads =",
    ).replace("in data:", "in data:\n    count = count + 1")
    assert _rewritten(text).endswith(
        "    count = count + 1\n"
        "    rate.assign(schedule(count))\n"
        "    loss = step(y, x)\n"
        "    print(count, loss.numpy())\n"
    )


def test_what_a_trace_knows_stays_in_the_step() -> None:
    text = LOOP.replace("model(x))", "tf.math.log(model(x)) / int(x.shape[1]))")
    assert "tf.math.log(model(x)) / int(x.shape[1])" in "".join(_rewritten(text).split("return")[0])


def test_the_first_of_several_features_is_no_batch() -> None:
    taken = "model(next(iter(x.values())))"
    assert taken in "".join(_rewritten(LOOP.replace("model(x)", taken)).split("for x")[0])


@pytest.mark.parametrize("line", ["tf.summary.scalar('loss', loss, step=1)", "total += loss"])
def test_what_only_looks_at_results_follows_the_step(line: str) -> None:
    text = LOOP.replace("    optimizer", f"    {line}\n    optimizer")
    assert _rewritten(text).endswith(f"    loss = step(y, x)\n    {line}\n")


@pytest.mark.parametrize("count", ["x.shape[0]", "len(x)", "int(tf.shape(x)[0])"])
@pytest.mark.parametrize("place", ["    grads", "        loss", "    optimizer"])
def test_a_number_of_rows_that_other_code_reads_stays_a_number(count: str, place: str) -> None:
    line = f"{' ' * (len(place) - len(place.lstrip()))}n = {count}\n"
    text = LOOP.replace(place, f"{line}{place}", 1) + "    total += float(loss) * n\n"
    assert _rewritten(text).endswith(
        f"    loss = step(y, x)\n    n = {count}\n    total += float(loss) * n\n"
    )


def test_a_float_is_given_as_a_tensor() -> None:
    text = LOOP.replace("model(x))", "model(x)) * weight").replace(
        "in data:", "in data:\n    weight = anneal()"
    )
    assert "    step(y, x, tf.constant(float(weight)))\n" in _rewritten(text, numbers=("weight",))


def test_comments_and_blank_lines_stay_with_their_statements() -> None:
    text = LOOP.replace("    grads =", "\n    # of all weights\n    grads =")
    assert "\n\n    # of all weights\n    grads =" in _rewritten(text)


def test_a_learning_rate_goes_before_the_step_also_where_python_computes_it() -> None:
    rate = "    optimizer.learning_rate.assign(float(schedule(count)))\n"
    text = LOOP.replace("    optimizer", f"{rate}    optimizer", 1)
    assert _rewritten(text).endswith(f"{rate}    step(y, x)\n")


def test_names_that_are_deleted_or_added_to_later_are_results() -> None:
    read = _rewritten(LOOP + "    loss += penalty\n    del grads\n")
    assert "    loss, grads = step(y, x)\n    loss += penalty\n    del grads\n" in read


def test_a_global_name_that_the_step_sets_is_a_result() -> None:
    text = "def train():\n    global loss\n" + indent(LOOP, "    ")
    assert "        loss = step(y, x)\n" in _rewritten(text)


SECOND = LOOP.partition("\n")[2].replace("loss", "g_loss")
TWO_LOOPS = LOOP + "print(loss)\n" + LOOP


@pytest.mark.parametrize(
    ("text", "place"),
    [(TWO_LOOPS, 0), (TWO_LOOPS, -1), (LOOP + SECOND, -1)],
    ids=["the first loop", "the second loop", "in one loop"],
)
def test_each_step_may_open_a_tape_of_the_same_name(text: str, place: int) -> None:
    lines = [line for line, one in enumerate(text.splitlines(), 1) if "GradientTape" in one]
    assert "tape" not in step_at(text, lines[place]).results
    with pytest.raises(NotAFunctionError, match="tape"):
        step_at(text + "    del tape\n", lines[-1])
    with pytest.raises(NotAFunctionError, match="tape"):
        step_at(text + "print(tape)\n", lines[place])


def test_what_a_step_hands_on_to_the_next_is_a_result() -> None:
    """The state of a recurrent network; what the loop sets anew for each step is not handed on."""
    carried = LOOP.replace("loss = loss_of(y, model(x))", "y, state = model(y, x, state)")
    read = _rewritten("state = None\n" + carried.replace("loss,", "y,"))
    assert read.endswith("    state = step(y, x, state)\n")


REFUSED = {
    "a deleted tape": LOOP + "    del tape\n",
    "a batch that it takes itself": LOOP.replace("model(x))", "model(next(batches)))"),
    "a call for its effect": LOOP.replace("    grads", "    model.reset_states()\n    grads", 1),
    "another statement on its last line": LOOP.rstrip() + "; n = 1\n",
    "a value in the middle": LOOP.replace("loss_of(y, model(x))", "loss_of(float(y), model(x))"),
    "two tapes": LOOP.replace(
        "    grads", "    with tf.GradientTape() as other:\n        a()\n    grads"
    ),
    "no loop": dedent("\n".join(LOOP.splitlines()[1:])),
    "no update": LOOP.replace("optimizer.apply_gradients", "descend"),
    "an early end": LOOP.replace("    grads", "    if stop(loss):\n        break\n    grads", 1),
    "a name that is set in some cases": LOOP.replace(
        "    optimizer", "    if grads:\n        bound = 1.0\n    optimizer", 1
    ),
    "a tape that is read later": LOOP + "print(tape)\n",
    "text of several lines": LOOP.replace("model(x))", "model(x, '''a\nb'''))"),
    "several statements on a line": LOOP.replace("    grads", "    a(); grads", 1),
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED.keys())
def test_a_step_that_is_not_moved(text: str) -> None:
    with pytest.raises(NotAFunctionError):
        _step(text)
