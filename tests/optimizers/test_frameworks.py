"""What the package says where it cannot work; nothing of TensorFlow is loaded."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType, SimpleNamespace

import pytest


def imported_with(monkeypatch: pytest.MonkeyPatch, keras: object) -> ModuleType:
    monkeypatch.setitem(sys.modules, "keras", keras)  # type: ignore[arg-type]
    for name in [name for name in sys.modules if name.startswith("pipediag.optimizers")]:
        monkeypatch.delitem(sys.modules, name)
    return importlib.import_module("pipediag.optimizers")


def backend(name: str) -> SimpleNamespace:
    return SimpleNamespace(backend=lambda: name)


def test_keras_2_is_refused_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    keras = SimpleNamespace(__version__="2.15.0", backend=backend("tensorflow"))
    with pytest.raises(ImportError, match=r"needs Keras 3, and Keras 2\.15\.0 is installed"):
        imported_with(monkeypatch, keras)


def test_another_backend_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    keras = SimpleNamespace(__version__="3.12.0", backend=backend("jax"))
    with pytest.raises(ImportError, match=r"Keras runs on jax.*KERAS_BACKEND=tensorflow"):
        imported_with(monkeypatch, keras)


def test_without_keras_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImportError, match=r"Keras is not installed.*pip install tensorflow"):
        imported_with(monkeypatch, None)
