"""The fixture `pipediag`: measurements, and limits that a test checks them against."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pipediag.cli.doctor import BUSY_SHARE
from pipediag.encoding import one_line, printable
from pipediag.errors import ExitStatus, PipediagError
from pipediag.facts.names import as_typed

if TYPE_CHECKING:
    from pipediag.gate.config import GateConfig
    from pipediag.gate.result import Check, GateResult
    from pipediag.library.result import Result
    from pipediag.session.model import Session

MOST_PERCENT = 100.0 * BUSY_SHARE
"""Use of the CPUs by others from which on `pipediag doctor` warns, too."""
EPOCHS = 1000
"""Number that is more than any measurement needs: it ends as soon as enough was seen."""

_LONGEST_NAME = 80


@dataclass(repr=False)
class Measurements:
    """Measures a training, and checks it against limits as `pipediag check` does.

    A limit that is certainly broken fails the test. What cannot be decided skips it: an interval
    that contains the limit, something that was not measured, or other programs that used the CPUs
    meanwhile. If a test does not pass, its report is written, and the message says where.
    """

    reports: Path
    """Directory of the reports of this test."""
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
            if model is None:
                return analyze_input(dataset, **given)
            return analyze(dataset, model, **{"epochs": EPOCHS, **given})
        except PipediagError as error:
            raise pytest.fail.Exception(str(error)) from None

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

        Raises PipediagError: none was given, one that does not exist, or a wrong value.
        """
        __tracebackhide__ = True
        from pipediag.gate.config import config_of
        from pipediag.gate.evaluation import evaluate
        from pipediag.rules.registry import BY_ID

        config = config_of(limits, list(BY_ID))
        judged = evaluate(result.session, config, only_named=True)
        self._decide(result, judged, config)

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
        host = result.session.host
        percent = 100 * (host.cores_of_others or 0) / host.cores_allowed if host else 0.0
        if percent > MOST_PERCENT and not config.allow_inconclusive:
            busy = (
                f"Other programs used {percent:.0f} % of the CPUs; more than {MOST_PERCENT:g} % "
                "spoils a measurement."
            )
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
        if result.directory is None:
            number = next(self._numbers)
            place = self.reports if number == 1 else self.reports / f"{number}"
            try:
                result.directory = result.save(place)
            except PipediagError as error:
                return str(error)
        place = result.directory
        page = place / "report.html"
        return f"Report: {_path(str(page))}" if page.exists() else f"Session: {_path(str(place))}"


def measurements_of(test: pytest.Item) -> Measurements:
    """Return the fixture of a test, with its reports below those of its project."""
    readable = re.sub(r"[^\w.]+", "-", test.nodeid).strip("-.")[-_LONGEST_NAME:]
    folder = f"{readable}-{hashlib.sha256(test.nodeid.encode()).hexdigest()[:8]}"
    return Measurements(test.config.rootpath / "reports" / "pytest" / folder)


def _failure(session: Session, gate: GateResult) -> Iterator[str]:
    broken = [check for check in gate.checks if check.outcome == "fail"]
    if gate.script_failure is not None:
        yield gate.script_failure
    yield from (check.sentence for check in broken)
    verdict = session.verdict
    yield f"Verdict: {verdict.summary} ({verdict.confidence} confidence)"
    if (place := _place(session, broken)) is not None:
        yield f"Line: {place}"
    if verdict.next_steps:
        yield f"Do first: {verdict.next_steps[0]}"


def _place(session: Session, broken: list[Check]) -> str | None:
    from pipediag.facts.order import culprit_place

    place = culprit_place(session)
    if place is not None:
        return f"{_path(place.file)}:{place.line}" if place.line else _path(place.file)
    return next((check.location for check in broken if check.location), None)


def _path(file: str) -> str:
    return str(as_typed(Path(file)))
