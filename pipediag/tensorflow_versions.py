"""Versions of TensorFlow that can be measured.

The user's process imports it too: it imports nothing that Python has not imported itself.
"""

from __future__ import annotations

OLDEST = (2, 14)
"""Own choice: the oldest that the samples were run with. See docs/versions.md."""

BUILDS = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorflow-rocm",
    "tensorflow-macos",
    "tensorflow-intel",
    "tf-nightly",
    "tf-nightly-cpu",
)
"""Distributions that install the package `tensorflow`."""


def is_too_old(version: str | None) -> bool:
    """Return True if that version is known to be older than the oldest that can be measured."""
    parts = (version or "").split(".")[:2]
    if len(parts) < 2 or not all(part.isdecimal() for part in parts):
        return False
    return tuple(map(int, parts)) < OLDEST


def too_old_sentence(version: str) -> str:
    """Return what is wrong, in one sentence."""
    oldest = ".".join(map(str, OLDEST))
    return f"TensorFlow {version} is too old for pipediag, which measures {oldest} and newer."


def installed_builds() -> dict[str, str]:
    """Return the version of each distribution beside this interpreter that installs TensorFlow.

    It is what the installer noted: nothing is imported.
    """
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in BUILDS:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
