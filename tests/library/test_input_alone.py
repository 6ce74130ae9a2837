from __future__ import annotations

from pipediag.library.companion import of_input_alone
from pipediag.measures.verdict.decision import NOTHING_TRAINED
from pipediag.session.model import Session
from tests import factories
from tests.reporters import trial_sessions


def test_shares_of_a_step_and_gains_of_a_run_are_missing_with_the_reason() -> None:
    told = of_input_alone(factories.make_session(run=factories.make_run()))

    for name in ("run", "breakdown", "perturbation", "differential", "ceiling"):
        assert getattr(told, name) is None
        assert getattr(told, f"{name}_missing") == NOTHING_TRAINED
    assert told.input_wait is None
    assert told.steps is not None
    assert told.pipeline is not None


def test_no_finding_speaks_of_a_run() -> None:
    told = of_input_alone(trial_sessions.everything_tried())
    assert told.findings
    assert all(finding.for_run is None for finding in told.findings)
    assert told.combined is None or told.combined.for_run is None


def test_it_is_a_session_as_any_other() -> None:
    told = of_input_alone(factories.make_session())
    assert Session.model_validate(told.model_dump()) == told
