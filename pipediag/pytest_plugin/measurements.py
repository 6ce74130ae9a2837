"""The fixture `pipediag`: measurements, and limits that a test checks them against."""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import pytest

from pipediag.doctor.machine import BUSY_SHARE
from pipediag.encoding.text import one_line, printable
from pipediag.errors import ExitStatus, PipediagError
from pipediag.sensors.machine import others_percent, read_cpus

if TYPE_CHECKING:
    from pipediag.gate.config import GateConfig
    from pipediag.gate.result import Check, GateResult
    from pipediag.library.result import Result
    from pipediag.session.model import Session

MOST_PERCENT = 100.0 * BUSY_SHARE
"""Use of the CPUs by others from which on `pipediag doctor` warns, too."""
EPOCHS = 1000
"""More than any measurement needs: it ends as soon as enough was seen."""
AROUND = 2
"""Lines of source that are shown above and below the one at fault. Own choice."""

_LOOK_S = 0.5
"""Fifty ticks of each CPU's counters."""
_LOOK_AGAIN_S = 0.1
_LONGEST_NAME = 80


class MachineTakenError(Exception):
    """Another process has measured for as long as this one was to wait."""


@contextmanager
def machine_lock(wait_s: float, file: Path | None = None) -> Iterator[int | None]:
    """Hold the lock of this user for measurements; it ends with the process at the latest.

    Gives its descriptor; None if no lock can be made, as on a file system without any.

    Raises:
        MachineTakenError: it did not come free in time.
    """
    path = file or Path(tempfile.gettempdir()) / f"pipediag-{os.getuid()}.lock"
    try:
        # A link that somebody else has put there is not followed.
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError:
        yield None
        return
    try:
        until = time.monotonic() + wait_s
        while not _locked(descriptor):
            if time.monotonic() >= until:
                raise MachineTakenError
            time.sleep(_LOOK_AGAIN_S)
        try:
            yield descriptor
        finally:
            # Closing alone would leave it to children that were forked meanwhile.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return True  # this file system has no locks
    return True


def reason_to_skip(marker: pytest.Mark) -> str | None:
    """Return why a test is not run now: other programs use more of the CPUs than it allows."""
    before = read_cpus()
    time.sleep(_LOOK_S)
    percent, most = others_percent(before, read_cpus()), _most_percent(marker)
    if percent is None or percent <= most:
        return None
    return (
        f"{_busy(percent, most)} Nothing was measured. Run the test when they have ended, or apart "
        "from other tests."
    )


def _most_percent(marker: pytest.Mark | None) -> float:
    return MOST_PERCENT if marker is None else _allowed(*marker.args, **marker.kwargs)


def _allowed(max_percent: float = MOST_PERCENT) -> float:
    """Take the marker's arguments, so that wrong ones are refused as those of a function."""
    return float(max_percent)


def _busy(percent: float, most: float) -> str:
    return (
        f"Other programs used {percent:.0f} % of the CPUs; more than {most:g} % spoils a "
        "measurement."
    )


@dataclass(repr=False)
class Measurements:
    """Measures a training, and checks it against limits as `pipediag check` does.

    A limit that is certainly broken fails the test. What cannot be decided skips it: an interval
    that contains the limit, something that was not measured, or other programs that used the CPUs
    meanwhile. The report of a test that did not pass is written, and the message names its place.
    """

    reports: Path
    """Directory of the reports of this test."""
    wait_s: float
    """Longest wait for other processes that measure, seconds."""
    most_busy_percent: float
    """Use of the CPUs by other programs during a measurement that is allowed."""
    _others: WeakKeyDictionary[Result, float] = field(default_factory=WeakKeyDictionary, init=False)
    """Use of the CPUs by other programs during each measurement, percent."""
    _written: WeakKeyDictionary[Result, Path] = field(default_factory=WeakKeyDictionary, init=False)
    _numbers: Iterator[int] = field(default_factory=partial(count, 1), init=False)

    def profile(self, dataset: Any, model: Any = None, **how: Any) -> Result:
        """Measure without checking anything.

        Args:
            dataset: as for `pipediag.analyze`: a `tf.data.Dataset`, or a function that makes one.
            model: a Keras model, or a function of a batch. None measures the pipeline alone, as
                `pipediag.analyze_input` does.
            **how: arguments of these two. By default nothing is tried (`budget=0`), and a training
                may take as many epochs as the measurement needs.
        """
        __tracebackhide__ = True
        from pipediag.library.analysis import analyze, analyze_input

        given = {"budget": 0.0, **how}
        try:
            with machine_lock(self.wait_s):
                before = read_cpus()
                if model is None:
                    result = analyze_input(dataset, **given)
                else:
                    result = analyze(dataset, model, **{"epochs": EPOCHS, **given})
                percent = others_percent(before, read_cpus())
        except MachineTakenError:
            reason = (
                f"Other processes have measured on this machine for {self.wait_s:g} s, and two at "
                "once would spoil each other, so nothing was measured. Use fewer workers, or set "
                "pipediag_wait_s."
            )
            raise pytest.skip.Exception(reason) from None
        except PipediagError as error:
            raise pytest.fail.Exception(str(error)) from None
        if percent is not None:
            self._others[result] = percent
        return result

    def assert_not_input_bound(
        self, dataset: Any, model: Any, max_percent: float = 20.0, **how: Any
    ) -> Result:
        """Check that waiting for the next batch takes at most so many percent of the step.

        The default is what XProf calls input-bound; other arguments are those of `profile`.
        """
        __tracebackhide__ = True
        result = self.profile(dataset, model, **how)
        self.assert_within(result, max_input_wait_percent=max_percent)
        return result

    def assert_within(self, result: Result, **limits: Any) -> None:
        """Check these limits and nothing else.

        Args:
            result: from `profile`, or from `pipediag.load`.
            **limits: those of `[tool.pipediag]`, with underscores: `max_overhead_percent=15`,
                `rules={"parallel-map": "error"}`.

        Raises:
            TypeError: none was given, or one that does not exist.
            ValueError: a value is of the wrong kind.
        """
        __tracebackhide__ = True
        from pipediag.gate.config import config_of, reject_unknown_rules
        from pipediag.gate.evaluation import evaluate_named
        from pipediag.rules.registry import BY_ID

        config = config_of(limits)
        try:
            reject_unknown_rules(config, list(BY_ID), "The argument rules")
        except PipediagError as error:
            raise ValueError(str(error)) from None
        self._decide(result, evaluate_named(result.session, config), config)

    def assert_passes(self, result: Result) -> None:
        """Check what `pipediag check` would, by `[tool.pipediag]` of the nearest pyproject.toml."""
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
            busy = _busy(percent, self.most_busy_percent)
            self._skip(result, [busy, "Measured:", *(check.sentence for check in gate.checks)])
        if gate.status is ExitStatus.INCONCLUSIVE:
            self._skip(result, [check.sentence for check in gate.undecided])
        if gate.status is not ExitStatus.DONE:
            lines = [*_failure(result.session, gate), self._report(result)]
            pytest.fail(printable("\n".join(lines)))

    def _skip(self, result: Result, sentences: list[str]) -> None:
        """Skip with one line, as pytest shows no more of a skipped test."""
        __tracebackhide__ = True
        said = " ".join(["Inconclusive.", *sentences, self._report(result)])
        pytest.skip(one_line(said.replace("(--steps)", "(`steps=`)")))

    def _report(self, result: Result) -> str:
        """Return the place of the report, which is written unless it is there; or why not."""
        place = result.directory or self._written.get(result)
        if place is None:
            number = next(self._numbers)
            place = self.reports if number == 1 else self.reports / f"{number}"
            try:
                self._written[result] = result.save(place)
            except PipediagError as error:
                return str(error)
        page = place / "report.html"
        return f"Report: {_path(str(page))}" if page.exists() else f"Session: {_path(str(place))}"


def measurements_of(test: pytest.Item) -> Measurements:
    """Return the fixture of a test, as its project and its marker configure it."""
    config = test.config
    wait_s = config.getini("pipediag_wait_s")
    readable = re.sub(r"[^\w.]+", "-", test.nodeid).strip("-.")[-_LONGEST_NAME:]
    folder = f"{readable}-{hashlib.sha256(test.nodeid.encode()).hexdigest()[:8]}"
    try:
        return Measurements(
            reports=config.rootpath / config.getini("pipediag_reports") / folder,
            wait_s=float(wait_s),
            most_busy_percent=_most_percent(test.get_closest_marker("pipediag_quiet")),
        )
    except ValueError:
        raise pytest.UsageError(
            f"pipediag_wait_s is {wait_s!r}; it is a number of seconds."
        ) from None


def _failure(session: Session, gate: GateResult) -> Iterator[str]:
    """Yield what is over its limit, and what a person needs to act on it."""
    broken = [check for check in gate.checks if check.outcome == "fail"]
    if gate.script_failure is not None:
        yield gate.script_failure
    for check in broken:
        yield check.sentence
        yield from (f"  {line}" for line in check.diff_lines)
    verdict = session.verdict
    yield f"Verdict: {verdict.summary} ({verdict.confidence} confidence)"
    yield from _source(session, broken)
    if verdict.next_steps:
        yield f"Do first: {verdict.next_steps[0]}"


def _source(session: Session, broken: list[Check]) -> Iterator[str]:
    """Yield the line at fault with its neighbours; without source, only its place."""
    from pipediag.facts.order import culprit_place

    excerpt, place = session.verdict.source, culprit_place(session)
    if excerpt is not None:
        yield f"{_path(excerpt.file)}:{excerpt.line}"
        for number, text in enumerate(excerpt.lines, start=excerpt.first_line):
            if abs(number - excerpt.line) <= AROUND:
                yield f"{'>' if number == excerpt.line else ' '} {number:5}  {text}".rstrip()
    elif place is not None:
        yield f"{_path(place.file)}:{place.line}" if place.line else _path(place.file)
    else:
        yield from [check.location for check in broken if check.location][:1]


def _path(file: str) -> str:
    """Return the path as a person would type it here."""
    if not Path(file).is_absolute():
        return file
    relative = os.path.relpath(file)
    return file if relative.startswith("..") else relative
