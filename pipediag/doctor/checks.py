"""The list of checks, in the order in which they are shown."""

from __future__ import annotations

from collections.abc import Iterator

from pipediag.doctor import clocks, cpu, framework, gpu, memory, settings
from pipediag.doctor.check import Check
from pipediag.sensors.gpus import installed_gpus
from pipediag.sensors.nvml import Nvml


def all_checks(ask_tensorflow: bool) -> Iterator[Check]:
    """Each check as soon as it is made. Asking TensorFlow takes seconds: it imports it."""
    # Before anything else of ours makes the machine busy.
    load, wake_up = cpu.load(), clocks.wake_up()
    found = framework.installed()
    yield framework.build(found)
    imported = None
    if ask_tensorflow and found.builds:
        imported = framework.import_in_child()
        yield framework.importable(imported)
    yield gpu.gpus(installed_gpus(), _driver_version(), found, imported)
    yield settings.variables()
    yield cpu.quota()
    yield cpu.throttling()
    yield load
    yield cpu.stolen()
    yield cpu.frequency()
    yield memory.room()
    yield memory.swap()
    yield memory.page_cache()
    yield clocks.resolution()
    yield wake_up


def _driver_version() -> str | None:
    nvml = Nvml()
    version = nvml.driver_version()
    nvml.close()
    return version
