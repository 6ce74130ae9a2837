"""What is kept of one tf.data call, and what the Python of a pipeline calls and changes."""

from __future__ import annotations

import csv
import functools
import gzip
import io
import random
import time
from collections.abc import Callable
from functools import partial
from math import sqrt
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import numpy.random  # NumPy itself loads it on first use
import pytest

from pipediag.capture.callsites import unwrap
from pipediag.capture.pipelines.calls import (
    MARK,
    MOST_FILES,
    call_of,
    name_given,
    remember,
    uncompressed_bytes,
)
from pipediag.capture.pipelines.functions import (
    changes_of,
    module_functions,
    random_state_of,
    side_effect,
)
from pipediag.session.recording import RecordedOperation


class Dataset:
    """As much of a dataset as a call is kept on."""

    element_spec = None

    def __init__(self, mark: str) -> None:
        self.__dict__[MARK] = mark


class Reader(Dataset):
    def __init__(self, mark: str, names: Any) -> None:
        super().__init__(mark)
        self._filenames = names


def operation(kind: str) -> RecordedOperation:
    return RecordedOperation("op1", kind, "name", None, None)


@pytest.mark.parametrize("kind", ["from_tensors", "from_tensor_slices"])
def test_the_scripts_data_is_not_kept(kind: str) -> None:
    dataset = Dataset("op1")
    remember(dataset, operation(kind), print, ([1] * 10,), {"name": "x"}, ())
    call = call_of(dataset)

    assert not call.repeatable
    assert (call.args, call.kwargs, call.generator) == ((), {}, None)


def from_generator(generator: Any, types: Any = None, args: Any = None) -> None:
    """Take the arguments of TensorFlow's function of that name."""


@pytest.mark.parametrize(
    ("args", "kwargs", "own"),
    [
        ((iter, "spec"), {}, ()),
        ((iter, "spec", (1, "a")), {}, (1, "a")),
        ((), {"generator": iter, "args": [2]}, (2,)),
    ],
)
def test_a_generator_is_kept_with_its_own_arguments(args: Any, kwargs: Any, own: Any) -> None:
    dataset = Dataset("op1")
    remember(dataset, operation("from_generator"), from_generator, args, kwargs, ())
    call = call_of(dataset)

    assert call.generator is iter
    assert (call.args, call.kwargs) == ((iter, *own), {})


@pytest.mark.parametrize(("args", "kwargs"), [((["a", "b"], "GZIP"), {}), ((), {"filenames": []})])
def test_a_list_of_files_is_kept_as_the_dataset_made_of_it(args: Any, kwargs: Any) -> None:
    names = Dataset("op1")
    dataset = Reader("op1", names)
    remember(dataset, operation("TFRecordDataset"), Reader, args, kwargs, ())
    call = call_of(dataset)

    assert call.args == ((names, "GZIP") if args else ())
    assert call.kwargs == ({"filenames": names} if kwargs else {})


def take(self: Any, count: int, name: str | None = None) -> None:
    """As tf.data's methods take their names."""


def zipped(*args: Any, datasets: Any = None, name: str | None = None) -> None:
    """As one takes its name that takes many things."""


@pytest.mark.parametrize(
    ("function", "args", "name", "takes"),
    [
        (take, ("dataset", 2), "own", True),
        (take, ("dataset", 2, "few"), "few", False),
        (take, ("dataset", 2, None), None, False),
        (zipped, ("one", "other", "third"), "own", True),
        (print, ("text",), "own", False),
    ],
)
def test_a_name_given_in_its_place(function: Any, args: Any, name: Any, takes: bool) -> None:
    assert name_given(function, args, {"name": "own"}) == (name, takes)


def test_plain_files_hold_what_they_take_and_of_others_that_is_not_known(tmp_path: Path) -> None:
    one, two = str(tmp_path / "a"), str(tmp_path / "b")
    Path(one).write_bytes(b"12345")
    Path(two).write_bytes(b"678")
    assert uncompressed_bytes([one, two], None) == 8
    assert uncompressed_bytes(one, "") == 5
    assert uncompressed_bytes(one, "GZIP") is None
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(b"text " * 200))
    assert uncompressed_bytes([str(packed)] * 2, "GZIP") == 2_000
    assert uncompressed_bytes(str(packed), "ZLIB") is None
    packed.write_bytes(gzip.compress(b"text " * 200) + gzip.compress(b"more"))
    assert uncompressed_bytes(str(packed), "GZIP") is None, "only the last part's size stands there"
    for others in ([one] * (MOST_FILES + 1), "gs://bucket/a.tfrecord", object(), [3.5]):
        assert uncompressed_bytes(others, None) is None


def attributes(x: Any) -> Any:
    return x.input + x.open + x.sleep(1) + x.random.uniform()


def opens(path: Any) -> Any:
    return open(path)  # noqa: PTH123


def nested(x: Any) -> Any:
    def inner(y: Any) -> Any:
        time.sleep(0.1)
        return [print(z) for z in y]

    return inner(x)


def own_print(x: Any) -> Any:
    print = x.print
    return print(x)


def of_the_script(x: Any) -> Any:
    return attributes(x)


def closing_over(module: Any) -> Any:
    return lambda x: module.sleep(x + 1)


@pytest.mark.parametrize(
    ("function", "names"),
    [
        (attributes, []),
        (own_print, []),
        (opens, ["open"]),
        (nested, ["print", "time.sleep"]),
        (closing_over(time), ["time.sleep"]),
        (closing_over(object()), []),
        (of_the_script, [f"{__name__}.attributes"]),
        (lambda x: sleep(x + 1), ["time.sleep"]),
        (lambda x: x + np.random.uniform(), ["numpy.random.uniform"]),
        (lambda x: x * random.random(), ["random.random"]),
        (lambda x: np.float32(x) + sqrt(x), ["math.sqrt"]),
        (partial(opens, "train.csv"), ["open"]),
        (print, []),
    ],
)
def test_names_count_for_what_they_are_bound_to(function: Any, names: list[str]) -> None:
    assert module_functions(unwrap(function)) == names


SEEN: list[int] = []
LOG = io.StringIO()
OUTSIDE = {
    "SEEN": SEEN,
    "VOCABULARY": {},
    "COUNT": 0,
    "BUFFER": np.zeros(3),
    "LOG": LOG,
    "ROWS": csv.writer(LOG),
}


def function_of(body: str, folder: Path) -> Callable[..., Any]:
    """Define a function with this body, whose source can be read."""
    text, path, names = f"def function(x):\n    {body}\n", folder / "script.py", dict(OUTSIDE)
    path.write_text(text, encoding="utf-8")
    exec(compile(text, str(path), "exec"), names)
    return names["function"]  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("global COUNT; COUNT += 1", "it assigns `COUNT`"),
        ("VOCABULARY[x] = len(VOCABULARY)", "it changes `VOCABULARY`"),
        ("BUFFER[:] = x", "it changes `BUFFER`"),
        ("LOG.write(x)", "it changes `LOG`"),
        ("ROWS.writerow([x])", "it changes `ROWS`"),
        ("open('rows.txt', 'a').write(x)", "it writes files"),
        ("words = []; words.append(x); table = {}; table['n'] = x; table.update(m=1)", None),
        ("return [COUNT, VOCABULARY.get(x, 0), open(x, encoding='utf-8').read()]", None),
    ],
)
def test_what_others_see(body: str, words: str | None, tmp_path: Path) -> None:
    assert side_effect(function_of(body, tmp_path)) == words


def appends(x: int) -> int:
    SEEN.append(x)
    return x


@functools.wraps(appends)
def wrapped(x: int) -> int:
    return appends(x)


def closes_over() -> Callable[[], None]:
    calls = 0

    def called() -> None:
        nonlocal calls
        calls += 1

    return called


class Counter:
    def __init__(self) -> None:
        self.position = 0
        self.rng = random.Random(1)
        self.read: list[int] = []

    def moves(self, x: int) -> None:
        self.position += x

    def keeps(self, x: int) -> None:
        self.read.append(x)

    def only_looks(self, x: int) -> int:
        return x + self.position

    def __call__(self, x: int) -> int:
        return x

    def marks(self, /) -> None:
        self.position = 0

    def takes_all(*args: Any) -> None:
        SEEN.append(len(args))


class Epochs:
    def __init__(self) -> None:
        self.epoch = 0

    def __call__(self) -> Any:
        self.epoch += 1
        yield self.epoch


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (closes_over(), "it assigns `calls`"),
        (Counter().moves, "it changes `self`"),
        (Counter().keeps, "it changes `self.read`"),
        (wrapped, "it changes `SEEN`"),
        (Counter().only_looks, None),
        (Counter(), None),
        (Counter().marks, "it changes `self`"),
        (Counter().takes_all, "it changes `SEEN`"),
        (Epochs(), "it changes `self`"),
        (partial(appends), "it changes `SEEN`"),
        (partial(Counter().keeps, 1), "it changes `self.read`"),
        (partial(Epochs()), "it changes `self`"),
        (partial(Counter().only_looks, 1), None),
        (SEEN.append, None),
        (np.add, None),
    ],
)
def test_what_functions_of_each_kind_change(
    function: Callable[..., Any], words: str | None
) -> None:
    assert side_effect(function) == words
    assert words in (None, changes_of(function))


COUNTING, LOOKING = Epochs(), Counter()
KEEPING = LOOKING.keeps


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: COUNTING(), "it changes `self`"),
        (lambda x: [x, KEEPING(x)], "it changes `self.read`"),
        (lambda x: [LOOKING.only_looks(x)], None),
        (lambda x: Counter().only_looks(x), None),
    ],
)
def test_what_objects_change_that_a_function_calls(function: Any, words: str | None) -> None:
    found = changes_of(function)
    assert found == words if words else not (found or "").startswith("it changes")


OWN_RNG = np.random.default_rng(1)


def drawing_from(rng: Any) -> Any:
    return lambda x: x + rng.random()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: x + OWN_RNG.random(), "it draws from `OWN_RNG`"),
        (lambda x, rng=None: x, None),
        (drawing_from(OWN_RNG), "it draws from `rng`"),
        (Counter().only_looks, "it draws from `rng`"),
        (Counter(), "it draws from `rng`"),
        (partial(Counter().only_looks, 1), "it draws from `rng`"),
        (partial(attributes, rng=OWN_RNG), "it draws from `rng`"),
        (partial(attributes, OWN_RNG), "it draws from `argument 1`"),
        (lambda x: x + random.random(), None),  # each process seeds Python's own anew
    ],
)
def test_a_generator_of_random_numbers_that_the_script_made(function: Any, words: Any) -> None:
    assert random_state_of(function) == words
