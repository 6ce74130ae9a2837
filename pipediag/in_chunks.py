"""Datasets of a generator's elements that take them over in stacks.

These functions are tried in the running training and written into the user's file as they are, so
they stand alone. TensorFlow calls Python for each element of `from_generator`, which costs 0.2 to
0.5 ms an element whatever it holds; with 64 at once and `unbatch` it was 6 to 13 µs
(TensorFlow 2.21, two cores). With lengths that vary it was 56 µs.
"""

import itertools

import numpy as np
import tensorflow as tf


def in_chunks(generator, output_signature, size=64):
    """Make a dataset of the elements of `generator()`, handed to TensorFlow in stacks."""

    def stacked(parts, spec):
        if isinstance(spec, dict):
            return {key: stacked([part[key] for part in parts], spec[key]) for key in spec}
        if isinstance(spec, tuple):
            return tuple(map(stacked, zip(*parts, strict=True), spec))
        return np.asarray(parts, spec.dtype.as_numpy_dtype)

    def chunks():
        elements = iter(generator())
        while chunk := list(itertools.islice(elements, size)):
            yield stacked(chunk, output_signature)

    specs = tf.nest.map_structure(
        lambda spec: tf.TensorSpec([None, *spec.shape], spec.dtype), output_signature
    )
    return tf.data.Dataset.from_generator(chunks, output_signature=specs).unbatch()


def in_ragged_chunks(generator, output_signature, size=64):
    """Make a dataset of the elements of `generator()`, handed to TensorFlow in stacks.

    Those whose first dimension is None are stacked as ragged tensors.
    """

    def stacked(parts, spec):
        if isinstance(spec, dict):
            return {key: stacked([part[key] for part in parts], spec[key]) for key in spec}
        if isinstance(spec, tuple):
            return tuple(map(stacked, zip(*parts, strict=True), spec))
        if None not in spec.shape:
            return np.asarray(parts, spec.dtype.as_numpy_dtype)
        rows = [np.asarray(part, spec.dtype.as_numpy_dtype) for part in parts]
        return tf.RaggedTensor.from_row_lengths(np.concatenate(rows), [len(row) for row in rows])

    def chunks():
        elements = iter(generator())
        while chunk := list(itertools.islice(elements, size)):
            yield stacked(chunk, output_signature)

    def spec_of_stack(spec):
        shape = [None, *spec.shape]
        if None in spec.shape:
            return tf.RaggedTensorSpec(shape, spec.dtype, ragged_rank=1)
        return tf.TensorSpec(shape, spec.dtype)

    specs = tf.nest.map_structure(spec_of_stack, output_signature)
    stacks = tf.data.Dataset.from_generator(chunks, output_signature=specs)
    # The rows are ragged tensors without a ragged dimension: a map makes tensors of them.
    if isinstance(output_signature, tuple):
        return stacks.unbatch().map(lambda *parts: parts)
    return stacks.unbatch().map(lambda element: element)
