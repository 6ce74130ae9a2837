"""Loops inside a tf.function, whose steps are counted: they differentiate, freeze and save as they
do natively."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

GRADIENTS = """
    import tensorflow as tf

    w = tf.Variable(2.0)
    dataset = tf.data.Dataset.range(4).map(lambda x: tf.cast(x, tf.float32))

    @tf.function
    def summed(it):
        total = tf.constant(0.0)
        for x in it:
            total += w * w * x
        return total

    @tf.function
    def inside(it):
        with tf.GradientTape() as tape:
            total = tf.constant(0.0)
            for x in it:
                total += w * x
        return tape.gradient(total, w)

    @tf.function
    def nested(it):
        with tf.GradientTape() as tape:
            total = tf.constant(0.0)
            for _ in tf.range(2):
                for x in it:
                    total += w * x
                    if x > 1.0:
                        break
        return tape.gradient(total, w)

    @tf.function
    def limited(it):
        def body(total):
            for x in it:
                total += w * x
            return (total,)

        with tf.GradientTape() as tape:
            start = (tf.constant(0.0),)
            total = tf.while_loop(lambda _: True, body, start, maximum_iterations=2)[0]
        return tape.gradient(total, w)

    with tf.GradientTape() as tape:
        total = summed(iter(dataset))
    print("FACT outside", float(tape.gradient(total, w)))
    with tf.GradientTape() as outer:
        with tf.GradientTape() as tape:
            total = summed(iter(dataset))
        first = tape.gradient(total, w)
    print("FACT second order", float(outer.gradient(first, w)))
    for function in (inside, nested, limited):
        print("FACT", function.__name__, float(function(iter(dataset))))
"""

FUNCTIONS = """
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    dataset = tf.data.Dataset.range(8).map(lambda x: tf.cast(x, tf.float32))
    module = tf.Module()
    module.w = tf.Variable(2.0)

    @tf.function(input_signature=[])
    def whole():
        total = tf.constant(0.0)
        for x in tf.data.Dataset.range(8):
            total += module.w * tf.cast(x, tf.float32)
        return total

    @tf.function
    def summed(it):
        total = tf.constant(0.0)
        for x in it:
            total += module.w * x
        return total

    print("FACT called", float(whole()), float(summed(iter(dataset))))
    iterator = iter(dataset)
    for function in (whole.get_concrete_function(), summed.get_concrete_function(iterator)):
        graph = function.graph
        print("FACT has", len(function.inputs), len(function.captured_inputs))
        print("FACT has", len(graph.variables), len(graph.as_graph_def().node) > 0)
    frozen = convert_variables_to_constants_v2(function)
    print("FACT frozen", len(frozen.inputs), float(frozen(iterator._iterator_resource)[0]))
    module.whole = whole.get_concrete_function()
    tf.saved_model.save(module, "saved")
"""
EMPTY_PARTS = """
    import tensorflow as tf

    ids = tf.random.stateless_uniform((2000, 6), (1, 2), 0, 50, tf.int32)
    batches = tf.data.Dataset.from_tensor_slices(ids).batch(8).map(lambda x: (x, None))
    dataset = batches.repeat(80)  # a call is asked now and then whether it trains
    table = tf.Variable(tf.ones((50, 4)))

    @tf.function
    def train(data):
        steps = tf.constant(0)
        for x, _ in data:
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.gather(table, x) ** 2)
            gradient = tape.gradient(loss, table)
            table.scatter_sub(tf.IndexedSlices(0.01 * gradient.values, gradient.indices))
            steps += 1
        return steps

    for _ in range(2):
        print("FACT", int(train(dataset)), int(train(iter(dataset))), float(tf.reduce_sum(table)))
"""
LOADED = """
    import tensorflow as tf

    module = tf.saved_model.load("saved")
    for _ in range(2):
        print("FACT loaded", float(module.whole()))
"""

SCRIPTS = {"gradients": (GRADIENTS, 5), "captures, variables and constants": (FUNCTIONS, 6)}


@pytest.mark.parametrize("what", SCRIPTS)
def test_what_is_made_of_a_function_that_loops_is_what_is_made_natively(
    make_case: MakeCase, what: str
) -> None:
    script, facts = SCRIPTS[what]
    make_case(script).alike("--run-to-end", "--budget", "0", facts=facts)


def test_a_loop_over_batches_with_a_none_in_them_makes_nothing_warn(make_case: MakeCase) -> None:
    analysed = make_case(EMPTY_PARTS).alike("--run-to-end", "--budget", "0", facts=2)
    assert "UserWarning" not in analysed.stderr
    (table,) = analysed.session.embeddings
    assert (table.gradient, table.ids) == ("sparse", None)
    assert not any("an error of its own" in note for note in analysed.session.notes)


def test_a_function_that_was_counted_runs_where_it_is_loaded_without_us(
    make_case: MakeCase,
) -> None:
    case = make_case(FUNCTIONS, loaded=LOADED)
    results = []
    for run in (case.natively(), case.analysed("--run-to-end", "--budget", "0")):
        (run.directory / "main.py").write_text(case.files["loaded.py"])
        loaded = case.natively(again_in=run)
        assert len(loaded.facts) == 2, loaded.stderr
        saved = (run.directory / "saved" / "saved_model.pb").read_bytes()
        assert b"pipediag" not in saved
        assert b"Accumulator" not in saved
        results.append(loaded.facts)

    assert results[0] == results[1]
