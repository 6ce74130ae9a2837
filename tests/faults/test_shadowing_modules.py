"""A script whose own modules have names that pipediag needs from the standard library."""

from __future__ import annotations

import pytest

from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

TRAINS = """
    import statistics

    print("FACT mine", statistics.normalise(4))
    import tensorflow as tf

    dataset = tf.data.Dataset.range(400).map(lambda x: tf.cast(x, tf.float32)).batch(2).repeat()
    weight = tf.Variable(1.0)

    @tf.function
    def step(batch):
        weight.assign_sub(0.001 * tf.reduce_mean(batch))

    for number, batch in enumerate(dataset):
        step(batch)
        if number == 1500:
            break
    print("FACT weight", weight.numpy())
"""


def test_each_gets_its_own(make_case: MakeCase) -> None:
    case = make_case(TRAINS, statistics="def normalise(x): return x / 2")
    native = case.natively()
    analysed = case.analysed("--run-to-end", "--budget", "0")

    assert native.facts
    assert (analysed.status, analysed.facts) == (native.status, native.facts), analysed.stderr
    assert analysed.session.steps is not None, analysed.session.steps_missing
