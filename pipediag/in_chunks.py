"""Functions that are written into the user's file as they are, so that each stands alone.

Those that TensorFlow calls for a stack of elements are tried in the running training. It calls
Python for each element of `from_generator`, which took 250 µs an element whatever it held; in
stacks of 64 that `unbatch` takes apart again it took 15 µs, 32 of nested structures with strings,
and 130 where lengths vary (TensorFlow 2.21, two cores).
"""

import itertools
import multiprocessing
import os
import queue

import numpy as np
import tensorflow as tf


def in_chunks(generator, output_signature, size=64):
    """Make a dataset of the elements of `generator()`, handed to TensorFlow in stacks.

    Those whose first dimension is None are stacked as ragged tensors.
    """

    def copied(part, spec):  # a generator may reuse one array for all elements
        if isinstance(spec, dict):
            return {key: copied(part[key], spec[key]) for key in spec}
        if isinstance(spec, tuple):
            return tuple(map(copied, part, spec))
        return np.array(part, spec.dtype.as_numpy_dtype)

    def stacked(spec, *parts):
        if None not in spec.shape:
            return np.stack(parts)
        return tf.RaggedTensor.from_row_lengths(np.concatenate(parts), [len(one) for one in parts])

    def chunks():
        elements = (copied(element, output_signature) for element in generator())
        while chunk := list(itertools.islice(elements, size)):
            yield tf.nest.map_structure(stacked, output_signature, *chunk)

    def spec_of_stack(spec):
        shape = [None, *spec.shape]
        if None in spec.shape:
            return tf.RaggedTensorSpec(shape, spec.dtype, ragged_rank=1)
        return tf.TensorSpec(shape, spec.dtype)

    specs = tf.nest.map_structure(spec_of_stack, output_signature)
    elements = tf.data.Dataset.from_generator(chunks, output_signature=specs).unbatch()
    if all(None not in spec.shape for spec in tf.nest.flatten(output_signature)):
        return elements
    # The rows are ragged tensors without a ragged dimension: a map makes tensors of them.
    if isinstance(output_signature, tuple):
        return elements.map(lambda *parts: parts)
    return elements.map(lambda element: element)


def rows_where(predicate):
    """Make a map's function that keeps the rows of a batch for which the predicate holds."""

    def kept(*batch):
        rows = tf.where(predicate(*batch))[:, 0]
        parts = batch if len(batch) > 1 else batch[0]
        return tf.nest.map_structure(lambda part: tf.gather(part, rows), parts)

    return kept


def length_of(dataset):
    """Make a function for `apply` that gives another dataset this one's length, if it is known."""
    length = int(dataset.cardinality())
    if length < 0:
        return lambda changed: changed
    return tf.data.experimental.assert_cardinality(length)


def cut_padding(features, *others, lengths=8, together=True):
    """Cut rows of ids that are padded with zeros to the longest row of their batch.

    The new length is one of a few, as a model is traced, or compiled, for each that it meets.
    Masks and targets of the same width are cut alike, if `together` is True.
    """
    batch = (features, *others)
    parts, groups = tf.nest.flatten(batch), {}
    for n, one in enumerate(tf.nest.flatten(features)):
        if one.dtype.is_integer and one.shape.rank == 2 and (one.shape[1] or 0) >= 16:
            groups.setdefault(one.shape[1] if together else n, []).append(n)
    for group in groups.values():
        width = parts[group[0]].shape[1]
        used = tf.reduce_any(tf.concat([parts[n] != 0 for n in group], axis=0), axis=0)
        first, behind = (tf.argmax(tf.cast(one, tf.int32)) for one in (used, used[::-1]))
        unit = -(-width // lengths)
        kept = tf.minimum((width - first - behind + unit - 1) // unit * unit, width)
        start = tf.minimum(first, width - kept)
        for n, one in enumerate(parts):
            if n in group or (together and one.shape[1:2] == [width]):
                parts[n] = one[:, start : start + kept]
    batch = tf.nest.pack_sequence_as(batch, parts)
    return batch if others else batch[0]


def in_buckets(dataset, batch_size, buckets=4, **padding):
    """Batch examples of similar length, so that less of a padded batch is padding.

    The lengths of the first 256 examples tell which go together.
    """
    specs = tf.nest.flatten(dataset.element_spec)
    part = next(n for n, spec in enumerate(specs) if spec.shape.rank and spec.shape[0] is None)

    def length(*element):
        return tf.shape(tf.nest.flatten(element)[part])[0]

    lengths = dataset.take(256).map(length).batch(256).get_single_element().numpy()
    quantiles = np.quantile(lengths, np.arange(1, buckets) / buckets)
    bounds = sorted({int(one) + 1 for one in quantiles})
    sizes = [batch_size] * (len(bounds) + 1)
    return dataset.bucket_by_sequence_length(length, bounds, sizes, **padding)


def for_each_row(function):
    """Make a function that calls `function` for each row of a batch and stacks what it returns."""

    def stacked(parts):
        arrays = [np.asarray(part) for part in parts]
        if arrays[0].dtype.kind in "SU":  # NumPy would truncate or pad them
            arrays = [np.asarray(part, dtype=object) for part in parts]
        return np.stack(arrays)

    def rows(*columns):
        # `py_function` passes tensors, which are best unstacked at once; `numpy_function` arrays.
        columns = [tf.unstack(each) if tf.is_tensor(each) else each for each in columns]
        returned = [function(*row) for row in zip(*columns, strict=True)]
        if isinstance(returned[0], (list, tuple)):
            return [stacked(parts) for parts in zip(*returned, strict=True)]
        return stacked(returned)

    return rows


@tf.autograph.experimental.do_not_convert
def in_processes(function, processes=4, limit_s=60.0):
    """Make a function that has one of several processes call `function`, which computes in Python.

    The processes are copies of this one: nothing that they change is seen here, NumPy's own random
    numbers are others in each, and TensorFlow can't be used in them.
    """
    context, ours, idle = multiprocessing.get_context("fork"), [], queue.SimpleQueue()

    def serve(pipe):
        for each in ours:  # a copy would keep the pipe open when this process is gone
            each.close()
        np.random.seed()
        try:
            while True:
                args = pipe.recv()
                try:
                    reply = function(*args), None
                except Exception as error:
                    reply = None, error
                pipe.send(reply)
        except (EOFError, OSError, KeyboardInterrupt):
            os._exit(0)

    for _ in range(processes):
        own, other = context.Pipe()
        ours.append(own)
        process = context.Process(target=serve, args=(other,), daemon=True)
        process.start()
        other.close()
        idle.put((own, process))

    def call(*args):
        pipe, process = idle.get(timeout=limit_s)
        pipe.send(args)
        if not pipe.poll(limit_s):
            process.kill()
            raise TimeoutError(f"A process gave no answer for {limit_s} s.")
        value, error = pipe.recv()
        idle.put((pipe, process))
        if error is not None:
            raise error
        return value

    return call


@tf.function(reduce_retracing=True)
def call_model(model, *args, **kwargs):
    """Call a model in a graph."""
    return model(*args, **kwargs)


@tf.function(reduce_retracing=True)
def call_method(model, method, *args, **kwargs):
    """Call a method of a model or a metric in a graph."""
    return getattr(model, method)(*args, **kwargs)


def weighted_choice(rng, values, size, weights):
    """Draw like `rng.choice(values, size, p=weights)`, keeping the sums of the last weights."""
    kept = vars(weighted_choice).setdefault("kept", [])
    count = values if np.ndim(values) == 0 else len(values)
    for own, sums in kept:
        if len(own) == count and np.array_equal(own, weights):
            drawn = sums.searchsorted(rng.random(size), side="right")
            return drawn if np.ndim(values) == 0 else np.asarray(values)[drawn]
    first = rng.choice(values, size, p=weights)  # checks the weights
    if weights is not None:
        sums = np.cumsum(np.array(weights, dtype=float))
        kept.insert(0, (np.array(weights, dtype=float), sums / sums[-1]))
        del kept[4:]
    return first


def rows_of(frame):
    """Yield the rows of a DataFrame as dictionaries, without a Series for each."""
    columns = list(frame.columns)
    for values in frame.itertuples(index=False, name=None):
        yield dict(zip(columns, values, strict=True))
