"""`trials.csv` alone gives each speed-up that a report shows, for the real runs of the gallery."""

from __future__ import annotations

import csv
import io
from statistics import geometric_mean

import pytest

from pipediag.reporters.tables import csv as tables
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.vocabulary import BASE
from tests.gallery.recorded import session_of
from tests.gallery.samples import EXHIBITS


def rates(session: Session, arm: str, trial: Trial) -> dict[str, float]:
    """By round, the examples per second of an arm: of its steps, or of an epoch with its start."""
    rows = csv.DictReader(io.StringIO(dict(tables.files(session))["trials.csv"]))
    found = {row["round"]: row for row in rows if row["arm"] == arm}
    if trial.basis != "epoch":
        return {number: float(row["examples_per_s"]) for number, row in found.items()}
    loop = session.diagnosed_loop()
    assert loop is not None
    assert loop.keras is not None
    assert loop.planned_steps
    assert loop.batch_size
    steps = loop.planned_steps / (loop.keras.epochs or 1)
    return {
        number: steps
        * loop.batch_size
        / (
            float(row["first_step_ms"]) / 1e3
            + (steps - 1) * loop.batch_size / float(row["examples_per_s"])
        )
        for number, row in found.items()
    }


@pytest.mark.parametrize("sample", [one.sample for one in EXHIBITS])
def test_the_ratio_of_an_edits_blocks_is_its_speed_up(sample: str) -> None:
    session = session_of(sample)
    for finding in session.findings:
        edit, trial = finding.edit, finding.trial
        if edit is None or trial.speedup is None:
            continue
        base, changed = rates(session, BASE, trial), rates(session, edit.id, trial)
        rounds = base.keys() & changed.keys()
        assert len(rounds) == trial.blocks
        ratio = geometric_mean(changed[number] / base[number] for number in rounds)
        assert ratio == pytest.approx(trial.speedup, rel=1e-3)


def test_some_of_them_are_of_steps_and_some_of_epochs() -> None:
    tried = [one.trial for sample in EXHIBITS for one in session_of(sample.sample).findings]
    assert {trial.basis for trial in tried if trial.speedup is not None} == {"step", "epoch"}
