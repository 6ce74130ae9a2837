"""What is kept of one tf.data call: its arguments, its name, and the bytes of its files."""

from __future__ import annotations

import gzip
import os
from pathlib import Path
from typing import Any

import pytest

from pipediag.capture.pipelines.calls import (
    MARK,
    MOST_FILES,
    call_of,
    given_in_place,
    remember,
    uncompressed_bytes,
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

    assert call is not None
    assert not call.repeatable
    assert (call.args, call.kwargs, call.generator) == ((), {}, None)


@pytest.mark.parametrize(("args", "kwargs"), [((iter, "spec"), {}), ((), {"generator": iter})])
def test_of_a_generator_only_the_callable_is_kept(args: Any, kwargs: Any) -> None:
    dataset = Dataset("op1")
    remember(dataset, operation("from_generator"), print, args, {**kwargs, "args": [1] * 10}, ())
    call = call_of(dataset)

    assert call is not None
    assert call.generator is iter
    assert (call.args, call.kwargs) == ((iter,), {})


@pytest.mark.parametrize(("args", "kwargs"), [((["a", "b"], "GZIP"), {}), ((), {"filenames": []})])
def test_a_list_of_files_is_kept_as_the_dataset_made_of_it(args: Any, kwargs: Any) -> None:
    names = Dataset("op1")
    dataset = Reader("op1", names)
    remember(dataset, operation("TFRecordDataset"), Reader, args, kwargs, ())
    call = call_of(dataset)

    assert call is not None
    assert call.args == ((names, "GZIP") if args else ())
    assert call.kwargs == ({"filenames": names} if kwargs else {})


def take(self: Any, count: int, name: str | None = None) -> None:
    """As tf.data's methods take their names."""


def zipped(*args: Any, datasets: Any = None, name: str | None = None) -> None:
    """As one takes its name that takes many things."""


@pytest.mark.parametrize(
    ("function", "args", "given"),
    [
        (take, ("dataset", 2), ()),
        (take, ("dataset", 2, "few"), ("few",)),
        (take, ("dataset", 2, None), (None,)),
        (zipped, ("one", "other", "third"), ()),
    ],
)
def test_a_name_given_in_its_place(function: Any, args: tuple[Any, ...], given: Any) -> None:
    assert given_in_place(function, args) == given


def written(folder: Path, name: str, content: bytes) -> str:
    path = folder / name
    path.write_bytes(content)
    return str(path)


def test_plain_files_hold_what_they_take(tmp_path: Path) -> None:
    one, two = written(tmp_path, "a", b"12345"), written(tmp_path, "b", b"678")
    assert uncompressed_bytes([one, two], None) == 8
    assert uncompressed_bytes(one, "") == 5


def test_a_gzip_file_says_what_it_holds(tmp_path: Path) -> None:
    packed = written(tmp_path, "a.gz", gzip.compress(b"a" * 100_000))
    noise = written(tmp_path, "b.gz", gzip.compress(os.urandom(1000)))
    assert uncompressed_bytes((packed, noise), "GZIP") == 101_000


def test_what_sizes_do_not_tell_is_left_out(tmp_path: Path) -> None:
    name = written(tmp_path, "a", b"12345")
    assert uncompressed_bytes(name, "ZLIB") is None
    assert uncompressed_bytes([name] * (MOST_FILES + 1), None) is None
    assert uncompressed_bytes("gs://bucket/a.tfrecord", None) is None
    assert uncompressed_bytes(object(), None) is None
    assert uncompressed_bytes([3.5], None) is None
