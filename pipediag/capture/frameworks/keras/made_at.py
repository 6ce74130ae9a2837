"""The lines of the script that made an Embedding layer, and that compiled a model."""

from __future__ import annotations

import inspect
import weakref
from typing import Any

from pipediag.capture.callsites import CallSite, call_site
from pipediag.capture.guard import Guard

_MADE_AT: weakref.WeakKeyDictionary[Any, CallSite] = weakref.WeakKeyDictionary()


def watch_layers(layer_class: Any, guard: Guard) -> None:
    """Note where each layer of the class is made."""
    note = guard.entry("noting where layers are made", _note)
    original = vars(layer_class)["__init__"]
    hooked = guard.before(original, note)
    # Keras reads the names of its arguments, of the function that it finds there.
    hooked.__signature__ = inspect.signature(original)  # type: ignore[attr-defined]
    layer_class.__init__ = hooked


_COMPILED_AT: weakref.WeakKeyDictionary[Any, CallSite] = weakref.WeakKeyDictionary()


def watch_compile(trainer: Any, guard: Guard) -> None:
    """Note where each model of a class that trains was last compiled."""
    note = guard.entry("noting where models are compiled", _note_compile)
    trainer.compile = guard.before(vars(trainer)["compile"], note)


def compiled_at(model: Any) -> tuple[str | None, int | None]:
    """Return file and line of the last `compile`; Nones where that was not seen."""
    try:
        site = _COMPILED_AT.get(model)
    except TypeError:  # a class of the user's whose instances take no weak reference
        site = None
    return (None, None) if site is None else (site.file, site.line)


def _note_compile(model: Any, *_: Any, **__: Any) -> None:
    site = call_site()
    if site is not None:
        _COMPILED_AT[model] = site


def made_at(layer: Any) -> tuple[str | None, int | None]:
    """File and line; Nones where that was not seen."""
    site = _MADE_AT.get(layer)
    return (None, None) if site is None else (site.file, site.line)


def _note(layer: Any, *_: Any, **__: Any) -> None:
    site = call_site()
    if site is not None:
        _MADE_AT[layer] = site
