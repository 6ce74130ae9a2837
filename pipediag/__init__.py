"""Pipediag says why TensorFlow training is slow, from a run of your own script."""

__version__ = "0.1.0"

_PLACES = {
    "PipediagError": "pipediag.errors",
    "Result": "pipediag.library.result",
    "Watch": "pipediag.library.watch",
    "analyze": "pipediag.library.analysis",
    "analyze_input": "pipediag.library.analysis",
    "callback": "pipediag.library.watch",
    "load": "pipediag.library.result",
    "load_ipython_extension": "pipediag.library.notebook",
    "watch": "pipediag.library.watch",
}
"""Imported on demand, so that importing the package brings nothing else along."""


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_PLACES[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES})
