from __future__ import annotations

import pytest

from pipediag.rules.run import costly_evaluation, slow_epoch_end, work_after_training
from pipediag.session.ledger import AFTERWARDS, AN_EPOCHS_END, EXITING, RunPart
from pipediag.session.model import Session
from tests import factories


def without(*not_seen: str, parts: tuple[RunPart, ...] = ()) -> Session:
    steps = RunPart(part="steps", seconds=20.0, percent=100.0, basis="projected")
    run = factories.make_run(not_seen=list(not_seen), parts=[steps, *parts])
    return factories.make_session(run=run)


@pytest.mark.parametrize(
    ("rule", "lacks"),
    [
        (costly_evaluation, AN_EPOCHS_END),
        (slow_epoch_end, AN_EPOCHS_END),
        (work_after_training, AFTERWARDS),
    ],
)
def test_what_a_stopped_script_did_not_come_to_is_not_said_to_be_fine(
    rule: object, lacks: str
) -> None:
    [unseen] = rule.check(without(lacks))  # type: ignore[attr-defined]
    assert (unseen.status, lacks in unseen.advice) == ("not-applicable", True)
    [seen] = rule.check(without())  # type: ignore[attr-defined]
    assert seen.status == "pass"


def test_an_exit_that_was_reckoned_is_not_the_work_after_the_training() -> None:
    leaving = RunPart(
        part="after_training", seconds=1.0, percent=5.0, basis="projected", what=EXITING
    )
    [unseen] = work_after_training.check(without(AFTERWARDS, parts=(leaving,)))
    assert unseen.status == "not-applicable"


def test_what_is_known_of_a_part_is_judged() -> None:
    """As where one of several trainings came to the end of an epoch."""
    short = RunPart(part="epoch_end", seconds=0.1, percent=0.5, basis="measured")
    [seen] = slow_epoch_end.check(without(AN_EPOCHS_END, parts=(short,)))
    assert seen.status == "pass"
