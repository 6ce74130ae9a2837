"""What the fixture `pipediag` is: measurements, and limits that they are held against."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pytest

from pipediag.errors import ExitStatus, PipediagError
from pipediag.pytest_plugin import wording
from pipediag.pytest_plugin.quietness import busy, most_percent
from pipediag.sensors.other_programs import others_percent, read_cpus

if TYPE_CHECKING:
    from pipediag.gate.config import GateConfig
    from pipediag.gate.result import GateResult
    from pipediag.library.result import Result

LOOK_AGAIN_S = 0.1


class MachineTakenError(Exception):
    """Another process has measured for as long as this one was to wait."""


class MachineLock:
    """Held within a `with` block, or until this process ends, however that comes about.

    It is one for each user and directory of temporary files. Where no lock can be made, as on a
    file system without any, everybody goes on.

    Raises:
        MachineTakenError: it did not come free in so many seconds.
    """

    def __init__(self, wait_s: float, file: Path | None = None) -> None:
        self._wait_s = wait_s
        self._file = file or Path(tempfile.gettempdir()) / f"pipediag-{os.getuid()}.lock"
        self._descriptor: int | None = None

    def __enter__(self) -> int | None:
        """Its descriptor; None where there is no lock."""
        try:
            # A link that somebody else has put there is not followed.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            self._descriptor = os.open(self._file, flags, 0o600)
        except OSError:
            return None
        until = time.monotonic() + self._wait_s
        while not self._taken(self._descriptor):
            if time.monotonic() >= until:
                self._close()
                raise MachineTakenError
            time.sleep(LOOK_AGAIN_S)
        return self._descriptor

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._descriptor is not None:
            # Closing alone would leave it to children that were forked meanwhile.
            fcntl.flock(self._descriptor, fcntl.LOCK_UN)
            self._close()

    @staticmethod
    def _taken(descriptor: int) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    def _close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


EPOCHS = 1000
"""More than any measurement needs: it ends as soon as enough was seen."""

_LONGEST_NAME = 80


@dataclass(repr=False)
class Measurements:
    """Measures a training, and holds it against limits as `pipediag check` does.

    A limit that is broken for certain fails the test. What can't be told skips it: an interval that
    holds the limit, something that was not measured, or other programs that used the CPUs
    meanwhile. The report of what did not pass is written, and its place is in the message.
    """

    reports: Path
    """Where those of this test go."""
    wait_s: float
    """For other processes that measure, seconds."""
    most_busy_percent: float
    """Of the CPUs, that other programs may use while something is measured."""
    _others: WeakKeyDictionary[Result, float] = field(default_factory=WeakKeyDictionary, init=False)
    """Percent of the CPUs that other programs used meanwhile."""
    _written: WeakKeyDictionary[Result, Path] = field(default_factory=WeakKeyDictionary, init=False)
    _numbers: Iterator[int] = field(default_factory=partial(count, 1), init=False)
    """Of the reports."""

    def profile(self, dataset: Any, model: Any = None, **how: Any) -> Result:
        """Measure, and say nothing of whether it is good.

        Args:
            dataset: as for `pipediag.analyze`: a `tf.data.Dataset`, or a function that makes one.
            model: what trains on it: a Keras model, or a function of a batch. None measures the
                pipeline alone, as `pipediag.analyze_input` does.
            **how: arguments of these two. Without any, nothing is tried (`budget=0`), and a
                training may take as many epochs as the measurement needs.
        """
        __tracebackhide__ = True
        from pipediag.library.analysis import analyze, analyze_input

        given = {"budget": 0.0, **how}
        try:
            with MachineLock(self.wait_s):
                before = read_cpus()
                if model is None:
                    result = analyze_input(dataset, **given)
                else:
                    result = analyze(dataset, model, **{"epochs": EPOCHS, **given})
                percent = others_percent(before, read_cpus())
        except MachineTakenError:
            raise pytest.skip.Exception(wording.taken(self.wait_s)) from None
        except PipediagError as error:
            raise pytest.fail.Exception(str(error)) from None
        if percent is not None:
            self._others[result] = percent
        return result

    def assert_not_input_bound(
        self, dataset: Any, model: Any, max_percent: float = 20.0, **how: Any
    ) -> Result:
        """Waiting for the next batch takes at most so much of the step.

        Args:
            dataset: as for `profile`.
            model: as for `profile`.
            max_percent: of the step; by default what XProf calls input-bound.
            **how: as for `profile`.
        """
        __tracebackhide__ = True
        result = self.profile(dataset, model, **how)
        self.assert_within(result, max_input_wait_percent=max_percent)
        return result

    def assert_within(self, result: Result, **limits: Any) -> None:
        """It is within these limits; what they do not name is not judged.

        Args:
            result: of `profile`, or of `pipediag.load`.
            **limits: those of `[tool.pipediag]`, with underscores: `max_overhead_percent=15`,
                `rules={"parallel-map": "error"}`.

        Raises:
            TypeError: none was given, or one that does not exist.
            ValueError: a value is of the wrong kind.
        """
        __tracebackhide__ = True
        from pipediag.gate.config import config_of, reject_unknown_rules
        from pipediag.gate.evaluation import evaluate_named
        from pipediag.rules.registry import METAS

        config = config_of(limits)
        try:
            reject_unknown_rules(config, list(METAS), "The argument rules")
        except PipediagError as error:
            raise ValueError(str(error)) from None
        self._decide(result, evaluate_named(result.session, config), config)

    def assert_passes(self, result: Result) -> None:
        """`pipediag check` would let it pass, with `[tool.pipediag]` of the nearest pyproject.toml.

        Args:
            result: of `profile`, or of `pipediag.load`.
        """
        __tracebackhide__ = True
        from pipediag.cli.common import load_gate_config
        from pipediag.gate.evaluation import evaluate

        try:
            config = load_gate_config(None)
        except PipediagError as error:
            raise pytest.fail.Exception(str(error)) from None
        self._decide(result, evaluate(result.session, config), config)

    def _decide(self, result: Result, gate: GateResult, config: GateConfig) -> None:
        __tracebackhide__ = True
        percent = self._others.get(result, 0.0)
        if percent > self.most_busy_percent and not config.allow_inconclusive:
            report = self._report(result)
            pytest.skip(wording.disturbed(busy(percent, self.most_busy_percent), gate, report))
        if gate.status is ExitStatus.INCONCLUSIVE:
            pytest.skip(wording.undecided(gate, self._report(result)))
        if gate.status is not ExitStatus.DONE:
            pytest.fail(wording.failed(result.session, gate, self._report(result)))

    def _report(self, result: Result) -> Path | str:
        """Where it is; written now where it is not yet. Or why there is none."""
        if result.directory is not None:
            return result.directory
        if result not in self._written:
            number = next(self._numbers)
            place = self.reports if number == 1 else self.reports / f"{number}"
            try:
                self._written[result] = result.save(place)
            except PipediagError as error:
                return str(error)
        return self._written[result]


def measurements_of(test: pytest.Item) -> Measurements:
    """For one test, as its project and its marker have it."""
    config = test.config
    return Measurements(
        reports=config.rootpath / config.getini("pipediag_reports") / _folder(test.nodeid),
        wait_s=_seconds(config.getini("pipediag_wait_s")),
        most_busy_percent=most_percent(test.get_closest_marker("pipediag_quiet")),
    )


def _folder(nodeid: str) -> str:
    """One for each test, however its parameters are called."""
    readable = re.sub(r"[^\w.]+", "-", nodeid).strip("-.")[-_LONGEST_NAME:]
    return f"{readable}-{hashlib.sha256(nodeid.encode()).hexdigest()[:8]}"


def _seconds(given: str) -> float:
    try:
        return float(given)
    except ValueError:
        raise pytest.UsageError(
            f"pipediag_wait_s is {given!r}; it is a number of seconds."
        ) from None
