"""Functions that loop over data by themselves: they run, freeze and save as they do natively."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

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
LOADED = """
    import tensorflow as tf

    module = tf.saved_model.load("saved")
    for _ in range(2):
        print("FACT loaded", float(module.whole()))
"""


def test_what_is_made_of_a_function_that_loops_is_what_is_made_natively(
    make_case: MakeCase,
) -> None:
    make_case(FUNCTIONS).alike("--run-to-end", "--budget", "0", facts=6)


def test_a_function_that_loops_runs_where_it_is_loaded_without_us(make_case: MakeCase) -> None:
    case = make_case(FUNCTIONS, loaded=LOADED)
    results = []
    for run in (case.natively(), case.analysed("--run-to-end", "--budget", "0")):
        (run.directory / "main.py").write_text(case.files["loaded.py"])
        loaded = case.natively(again_in=run)
        assert len(loaded.facts) == 2, loaded.stderr
        saved = (run.directory / "saved" / "saved_model.pb").read_bytes()
        assert b"pipediag" not in saved
        results.append(loaded.facts)

    assert results[0] == results[1]
