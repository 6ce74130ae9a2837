"""Files that a script leaves to the interpreter to close, and caches that it was filling."""

from __future__ import annotations

import bz2
import gzip
import zipfile
from pathlib import Path

import h5py
import pytest

from .case import Run
from .conftest import MakeCase

pytestmark = [pytest.mark.tensorflow, pytest.mark.faults]

WRITERS = """
    import bz2
    import gzip
    import logging
    import logging.handlers
    import os
    import shelve
    import sys
    import tempfile
    import time
    import zipfile

    import h5py
    import numpy as np
    import tensorflow as tf

    import elsewhere

    text = open("text.txt", "w")
    text.write("hello")
    records = tf.io.TFRecordWriter("records")
    for number in range(50):
        records.write(b"record %d" % number)
    packed = gzip.open("packed.gz", "wb")
    packed.write(b"hello" * 1000)
    packed_text = gzip.open("packed_text.gz", "wt")
    packed_text.write("hello" * 1000)
    packed_too = bz2.open("packed.bz2", "wb")
    packed_too.write(b"hello" * 1000)
    archive = zipfile.ZipFile("archive.zip", "w")
    archive.writestr("inside", b"b" * 1000)
    table = h5py.File("table.h5", "w")
    table["a"] = np.arange(1000)
    shelf = shelve.open("shelf")
    shelf["a"] = 1
    mapped = np.lib.format.open_memmap("mapped.npy", "w+", dtype="float32", shape=(10,))
    mapped[:] = 3
    folder = tempfile.TemporaryDirectory(dir=".")
    buffered = logging.handlers.MemoryHandler(100, target=logging.FileHandler("log.txt"))
    logging.getLogger("q").addHandler(buffered)
    logging.getLogger("q").warning("buffered")

    class Own:
        def __init__(self):
            self.descriptor = os.open("own", os.O_CREAT | os.O_WRONLY)
        def __del__(self):
            os.write(self.descriptor, b"deleted")

    own = Own()

    def waits(i):
        time.sleep(0.002)
        return i

    def in_python(i):
        return tf.ensure_shape(tf.numpy_function(waits, [i], tf.int64), [])

    STEPS = int(sys.argv[1])
"""

FIT = """
    import keras

    dataset = tf.data.Dataset.range(STEPS).map(in_python)
    dataset = dataset.map(lambda i: (tf.ones([16]), 1.0)).batch(2)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(dataset, verbose=0)
"""

LOOP = """
    total = tf.Variable(0.0)
    dataset = tf.data.Dataset.range(STEPS).map(lambda i: tf.cast(i, tf.float32) + total * 0)
    for value in dataset:
        total.assign_add(value)
"""

STILL_OPEN = """
    total = tf.Variable(0.0)
    rows = iter(tf.data.Dataset.range(10 * STEPS).map(in_python).prefetch(2))
    for _ in range(STEPS):
        total.assign_add(tf.cast(next(rows), tf.float32))
"""

ELSEWHERE = 'text = open("elsewhere.txt", "w")\ntext.write("from a module")\n'


def contents(run: Run) -> dict[str, bytes]:
    """What the files hold that are whole; those of gzip, zip and HDF5 say when they were made."""
    found = {name: _content(run.directory / name) for name in run.files}
    return {name: content for name, content in found.items() if content is not None}


def _content(path: Path) -> bytes | None:
    try:
        return _unpacked(path)
    except (EOFError, OSError, zipfile.BadZipFile):
        return None


def _unpacked(path: Path) -> bytes:
    match path.suffix:
        case ".gz":
            return gzip.decompress(path.read_bytes())
        case ".bz2":
            return bz2.decompress(path.read_bytes())
        case ".zip":
            with zipfile.ZipFile(path) as archive:
                return archive.read("inside")
        case ".h5":
            with h5py.File(path) as table:
                return bytes(table["a"][:].tobytes())
    return path.read_bytes()


@pytest.mark.parametrize(
    "training", [LOOP, FIT], ids=["a loop", "a fit with Python in its pipeline"]
)
def test_all_that_was_left_open_is_whole(make_case: MakeCase, training: str) -> None:
    case = make_case(WRITERS + training, "600", elsewhere=ELSEWHERE)
    native, analysed = case.natively(), case.analysed("--budget", "0", "--run-to-end")
    wanted, found = contents(native), contents(analysed)
    # Natively some are left cut where something keeps the script's names from going.
    assert len(wanted) > 10
    assert {name: found.get(name) for name in wanted} == wanted, analysed.stderr
    assert analysed.files.keys() == native.files.keys()
    assert analysed.status == native.status


@pytest.mark.parametrize(
    ("steps", "options", "outcome"),
    [("1000000", (), "stopped"), ("600", ("--run-to-end",), "finished")],
)
def test_so_it_is_where_a_pipeline_still_runs(
    make_case: MakeCase, steps: str, options: tuple[str, ...], outcome: str
) -> None:
    # Without that pipeline: natively, one whose thread is in Python just then keeps the names.
    native = make_case(WRITERS, "0", elsewhere=ELSEWHERE).natively()
    case = make_case(WRITERS + STILL_OPEN, steps, elsewhere=ELSEWHERE)
    analysed = case.analysed("--budget", "0", *options)
    assert analysed.session.script.outcome == outcome
    wanted, found = contents(native), contents(analysed)
    assert found.pop("main.py") != wanted.pop("main.py")
    assert found == wanted


LIFETIMES = """
    import os, sys, threading, time, weakref

    import tensorflow as tf

    class Function:
        def __call__(self, i):
            return tf.cast(i, tf.float32)

    total, function = tf.Variable(0.0), Function()
    alive = weakref.ref(function)
    numbers = tf.data.Dataset.range(600).map(function)
    for number in numbers:
        total.assign_add(number)
    del numbers, function
    print("FACT the data set is gone with its last name", alive() is None)

    file = open("of the child", "w")
    if os.fork() == 0:
        file.write("hello")
        sys.exit(3)
    print("FACT child", os.waitstatus_to_exitcode(os.wait()[1]), os.path.getsize("of the child"))

    def run():
        while True:
            time.sleep(0.001)

    threading.Thread(target=run, daemon=True).start()
    running = iter(tf.data.Dataset.range(600))
    next(running)
"""


def test_nothing_lives_longer_than_natively(make_case: MakeCase) -> None:
    analysed = make_case(LIFETIMES).alike("--run-to-end", "--budget", "0", facts=2)
    assert "Exception in thread" not in analysed.stderr


CACHED = """
    import sys

    import tensorflow as tf

    total = tf.Variable(0.0)
    rows = tf.data.Dataset.range(int(sys.argv[1])).map(lambda i: tf.cast(i, tf.float32))
    for _ in range(2):
        for value in rows.cache("kept").batch(4):
            total.assign_add(tf.reduce_sum(value))
    print("FACT total", float(total) > 0)
"""


def test_a_cache_that_was_being_filled_does_not_keep_the_next_run_from_it(
    make_case: MakeCase,
) -> None:
    stopped = make_case(CACHED, "10000000").analysed("--budget", "0")
    assert stopped.session.script.outcome == "stopped"
    assert not [name for name in stopped.files if name.startswith("kept")]
    short = make_case(CACHED, "400")
    again = short.natively(again_in=stopped)
    assert (again.status, again.facts) == (0, ["FACT total True"]), again.stderr
