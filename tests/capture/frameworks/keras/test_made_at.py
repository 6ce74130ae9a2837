"""Where layers are made, told by the line of the script that calls their class."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from pipediag.capture.frameworks.keras import made_at as module
from pipediag.capture.frameworks.keras.made_at import (
    compiled_at,
    made_at,
    watch_compile,
    watch_layers,
)
from pipediag.capture.guard import Guard


class Layer:
    """As Keras' Embedding: what it is made by is read of its `__init__`."""

    def __init__(self, rows: int, dim: int = 4, *, name: str = "words") -> None:
        self.made_by = (rows, dim, name)


@pytest.fixture
def layers() -> Any:
    class Watched(Layer):
        def __init__(self, rows: int, dim: int = 4, *, name: str = "words") -> None:
            super().__init__(rows, dim, name=name)

    return Watched


def test_the_line_is_known_and_the_layer_is_what_it_would_be(layers: Any) -> None:
    natively = inspect.getfullargspec(layers.__init__)
    watch_layers(layers, Guard(print))
    layer = layers(10, name="tokens")

    file, line = made_at(layer)
    assert file == __file__
    assert line == made_at(layers(3))[1] - 4  # type: ignore[operator]
    assert layer.made_by == (10, 4, "tokens")
    assert inspect.getfullargspec(layers.__init__) == natively


def test_of_a_layer_that_was_made_before_nothing_is_known(layers: Any) -> None:
    layer = layers(10)
    watch_layers(layers, Guard(print))

    assert made_at(layer) == (None, None)


def test_an_error_of_ours_leaves_the_layer_alone(
    layers: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("ours")

    notes: list[str] = []
    monkeypatch.setattr(module, "call_site", broken)
    watch_layers(layers, Guard(notes.append))

    assert layers(10).made_by == (10, 4, "words")
    assert "RuntimeError: ours" in notes[0]


def test_the_last_line_that_compiled_a_model_is_known() -> None:
    class Trainer:
        def compile(self, optimizer: str) -> str:
            return optimizer

    model = Trainer()
    assert compiled_at(model) == (None, None)
    watch_compile(Trainer, Guard(print))
    assert model.compile("sgd") == "sgd"
    first = compiled_at(model)
    assert model.compile("adam") == "adam"

    assert first[0] == __file__
    assert compiled_at(model)[1] == first[1] + 2  # type: ignore[operator]
