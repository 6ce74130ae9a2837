from __future__ import annotations

from typing import Any

import pytest

from pipediag.capture.pipelines.calls import given_in_place


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
