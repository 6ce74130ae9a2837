"""Tables of a session, and of a profile alone, as DataFrames and as CSV files."""

from __future__ import annotations

import csv
import io

import pytest

from pipediag.encoding import as_csv
from pipediag.errors import PipediagError
from pipediag.reporters.tables import TABLES, device_table, table, text
from pipediag.session.model import Session
from tests import factories
from tests.ledgers import make_gain
from tests.reporters import devices, trial_sessions
from tests.reporters.sessions import nothing_measured, profiled


def read(session: Session, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text(session, name))))


@pytest.mark.parametrize("name", TABLES)
def test_each_table_has_its_header_when_it_is_empty(name: str) -> None:
    session = profiled()
    frame, empty = table(session, name), table(nothing_measured(), name)
    assert list(frame.columns) == list(empty.columns)
    assert frame.columns.is_unique
    assert len(empty) == 0
    assert as_csv(empty).count("\n") == 1


def test_an_unknown_table_is_refused() -> None:
    with pytest.raises(PipediagError, match="no table 'nothing'"):
        table(factories.make_session(), "nothing")


def test_rows_are_the_records_of_the_session() -> None:
    session = profiled(run=factories.make_run())
    assert list(table(session, "steps")["duration_ms"][:40]) == [10.0] * 40
    operations = table(session, "pipeline")
    assert list(operations["id"]) == [op.id for op in session.pipeline.ops]
    assert list(operations["bottleneck"]) == [False, True, False, False]
    assert list(table(session, "loops")["steps"]) == [60]
    assert table(session, "breakdown")["percent"].sum() == pytest.approx(100)
    assert table(session, "host")["cpu_percent"][0] == 60.0
    assert len(table(session, "hot_python")) == len(session.host.hot_python)
    ledger = table(session, "run")
    assert list(ledger["part"]) == [
        "startup", "before_training", "before_training", "steps", "epoch_end"
    ]  # fmt: skip
    assert (ledger["ci95_percent_low"].iloc[-1], ledger["percent"].iloc[-1]) == (49.0, 50.0)


def test_missing_is_an_empty_cell_truth_is_spelled_and_whole_numbers_are_whole() -> None:
    session = profiled()
    [loop] = read(session, "loops")
    assert (loop["diagnosed"], loop["steps"], loop["beside"]) == ("true", "60", "")
    whole = {"steps": ["index", "block", "batches"], "gaps": ["step"]}
    for name, columns in whole.items():
        for column in columns:
            assert str(table(session, name)[column].dtype) == "Int64", (name, column)
            assert not [row for row in read(session, name) if "." in row[column]]


def test_a_finding_has_its_edit_its_trial_and_its_gain_for_the_run() -> None:
    gain = make_gain(1.25, 20.0, ci95=(1.2, 1.3))
    [first, *others] = trial_sessions.everything_tried().findings
    first = first.but(for_run=gain)
    frame = table(factories.make_session(findings=[first, *others]), "findings").set_index("rule")
    tried = frame.loc["parallel-map"]
    assert tried["edit_id"] == "parallel-map:map_0"
    assert (tried["trial_state"], tried["trial_blocks"]) == ("confirmed", 8)
    assert (tried["trial_ci95_low"], tried["trial_ci95_high"]) == (1.88, 2.01)
    assert (tried["run_speedup"], tried["run_ci95_low"], tried["run_after_s"]) == (1.25, 1.2, 16.0)
    assert frame.loc["random-map", ["edit_id", "run_speedup"]].isna().all()


def test_idle_time_is_divided_among_the_causes_and_short_gaps() -> None:
    row = device_table([devices.make_gpu()]).iloc[0]
    causes = [name for name in row.index if name.startswith("idle_") and name.endswith("_ms")]
    assert (
        sum(row[name] for name in causes if name != "idle_ms") + row["noise_ms"] == row["idle_ms"]
    )
    gaps = [devices.make_gap(), devices.make_gap(causes_ms={})]
    first, second = read(factories.make_session(devices=[devices.make_gpu(gaps=gaps)]), "gaps")
    assert (first["input_ms"], first["launch_ms"], first["copy_ms"]) == ("28.0", "2.0", "0.0")
    assert second["input_ms"] == ""
