from __future__ import annotations

from typing import Any

import pytest

from pipediag.capture.pipelines.calls import MARK, call_of, remember
from pipediag.session.recorded_operations import RecordedOperation


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


def test_a_call_that_returned_its_input_is_not_the_inputs_call() -> None:
    dataset = Dataset("op0")
    remember(dataset, operation("prefetch"), print, (dataset,), {}, ())

    assert call_of(dataset) is None
