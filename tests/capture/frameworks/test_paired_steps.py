"""For which batches a step is tried as a function."""

from __future__ import annotations

import pytest

from pipediag.capture.frameworks.tensorflow.paired_steps import for_any_batch

TEXT, IMAGE = (None, None), (None, 28, 28, 1)


@pytest.mark.parametrize(
    ("own", "elements", "expected"),
    [
        ((32, 23), [TEXT, (None,)], [None, None]),
        ((32, 28, 28, 1), [IMAGE, TEXT], [None, 28, 28, 1]),
        ((32, 28, 28, 1), [(32, 28, 28, 1)], [32, 28, 28, 1]),
        ((32, 784), [IMAGE, (None,)], [None, None]),
        ((32, 28, 28, 1), [None], [None] * 4),
        ((32, 28, 28, 1), [], [None] * 4),
        ((32, 20), [(None, 20), TEXT], [None, None]),
        ((), [()], []),
    ],
    ids=[
        "texts", "images", "whole batches", "what is computed of an element", "an unknown rank",
        "no dataset", "one of two parts", "a number",
    ],
)  # fmt: skip
def test_sizes_are_left_out_that_the_dataset_does_not_promise(
    own: tuple[int, ...], elements: list[tuple[int | None, ...] | None], expected: list[int | None]
) -> None:
    assert for_any_batch(own, [own[1:]], elements) == expected


def test_a_size_that_batches_had_otherwise_is_left_out() -> None:
    """Crops of a random size that are as large as the images by chance."""
    assert for_any_batch((8, 28), [(28,), (20,)], [(None, 28)]) == [None, None]
