"""Checks of what would spoil a measurement on this machine, for `pipediag doctor`."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.doctor import framework, machine
from pipediag.doctor.machine import Check
from pipediag.sensors.gpus import Nvml, installed_gpus


def all_checks(ask_tensorflow: bool) -> Iterator[Check]:
    """Yield each check as soon as it is made. Asking TensorFlow takes seconds: it is imported."""
    # Before anything else of ours makes the machine busy.
    load = machine.load()
    found = framework.installed()
    yield framework.build(found)
    imported = None
    if ask_tensorflow and found.builds:
        imported = framework.import_in_child()
        yield framework.importable(imported)
    yield framework.gpus(installed_gpus(), _driver_version(), found, imported)
    yield framework.variables()
    yield from (machine.quota(), machine.throttling(), load, machine.stolen(), machine.frequency())
    yield from (machine.room(), machine.swap())


def _driver_version() -> str | None:
    nvml = Nvml()
    version = nvml.driver_version()
    nvml.close()
    return version
