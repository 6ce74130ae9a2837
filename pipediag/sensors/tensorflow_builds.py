"""Which TensorFlow is installed, by what the installer noted; nothing of it is imported."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

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


def installed_builds() -> dict[str, str]:
    """Version of each distribution beside this interpreter that installs TensorFlow."""
    found = ((name, _version_of(name)) for name in BUILDS)
    return {name: number for name, number in found if number is not None}


def _version_of(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None
