"""Tables that are put together: by run, by clock and by step."""

from __future__ import annotations

import csv
import io
from itertools import chain

import pytest

from pipediag.facts.names import run_id
from pipediag.library.result import Result
from pipediag.reporters.tables import csv as tables
from pipediag.session.model import Session
from pipediag.session.steps import StepRow
from tests import factories, records
from tests.reporters import devices
from tests.reporters.tables.test_csv import NAMES, read


def profiled(**overrides: object) -> Session:
    """Forty steps of the baseline and ten of the profile, with a gap in its second and third."""
    baseline = factories.make_step_rows()
    profile = [
        StepRow(
            index=40 + n,
            window="profile",
            block=0,
            start_ms=4500.0 + 12.0 * n,
            duration_ms=12.0,
            input_wait_ms=None,
            batches=1,
        )
        for n in range(10)
    ]
    gaps = [
        devices.make_gap(start_ms=13.0, duration_ms=2.0, step=1),
        devices.make_gap(start_ms=30.0, duration_ms=1.0, step=2),
    ]
    values = {
        "step_rows": [*baseline, *profile],
        "devices": [devices.make_gpu(gaps=gaps)],
        **overrides,
    }
    return factories.make_session(**values)


def test_each_row_of_each_table_says_its_run() -> None:
    session = profiled()

    for name, make in tables.files(session):
        text = make()
        rows = list(csv.DictReader(io.StringIO(text)))
        assert next(csv.reader(io.StringIO(text)))[0] == "run_id", name
        assert {row["run_id"] for row in rows} <= {run_id(session)}


def test_a_run_has_one_id_and_no_other_has_it() -> None:
    session = factories.make_session()

    assert run_id(session) == run_id(factories.make_session())
    assert run_id(session)[0] == "r"
    others = [
        session.model_copy(update={"wall_s": session.wall_s + 0.001}),
        session.model_copy(update={"created_at": "2026-01-02T03:04:06+00:00"}),
    ]
    assert len({run_id(one) for one in (session, *others)}) == 3


def test_a_gap_is_joined_to_its_step() -> None:
    steps = {row["index"]: row for row in read(profiled(), "steps.csv")}

    for gap in read(profiled(), "gaps.csv"):
        step = steps[gap["step_index"]]
        into = float(gap["run_start_ms"]) - float(step["start_ms"])
        assert step["window"] == "profile"
        assert 0 <= into <= float(step["duration_ms"])
    assert [gap["step_index"] for gap in read(profiled(), "gaps.csv")] == ["41", "42"]


def test_gaps_that_do_not_lie_in_their_steps_are_joined_to_none() -> None:
    gaps = [devices.make_gap(start_ms=100.0, step=1), devices.make_gap(start_ms=70.0, step=0)]
    session = profiled(devices=[devices.make_gpu(gaps=gaps)])

    assert [(row["step_index"], row["run_start_ms"]) for row in read(session, "gaps.csv")] == [
        ("", ""),
        ("", ""),
    ]


def test_a_window_says_its_steps() -> None:
    rows = {row["kind"]: row for row in read(profiled(), "windows.csv")}

    assert (rows["baseline"]["first_step_index"], rows["baseline"]["last_step_index"]) == (
        "0", "39"
    )  # fmt: skip
    assert (rows["profile"]["first_step_index"], rows["profile"]["last_step_index"]) == ("40", "49")
    assert rows["warmup"]["first_step_index"] == ""


def test_evidence_is_one_row_a_fact() -> None:
    finding = factories.make_finding(
        evidence={"calls": 3, "share": 0.5, "calls_python": True, "kind": "map", "none": None}
    )
    first = factories.make_finding("first", evidence={})
    rows = read(factories.make_session(findings=[first, finding]), "evidence.csv")

    assert [(row["name"], row["value"], row["number"]) for row in rows] == [
        ("calls", "3", "3"),
        ("share", "0.5", "0.5"),
        ("calls_python", "true", ""),
        ("kind", "map", ""),
        ("none", "", ""),
    ]
    assert {(row["finding"], row["rule"]) for row in rows} == {("1", finding.rule)}


def test_copies_loops_breakdown_and_hot_lines_are_those_of_the_session() -> None:
    session = profiled()

    copies = read(session, "copies.csv")
    assert [(row["direction"], row["copied_bytes"]) for row in copies] == [
        ("host_to_device", "70000000"),
        ("set", ""),
    ]
    [loop] = read(session, "loops.csv")
    assert (loop["id"], loop["diagnosed"], loop["steps"]) == ("loop_0", "true", "60")
    assert sum(float(row["percent"]) for row in read(session, "breakdown.csv")) == pytest.approx(
        100
    )
    assert session.host is not None
    assert len(read(session, "hot_python.csv")) == len(session.host.hot_python)


def test_whole_numbers_are_written_whole() -> None:
    session = profiled(steps=records.make_steps(count=40))
    pandas = pytest.importorskip("pandas")
    whole = {
        "steps": ["index", "block", "batches"],
        "gaps": ["line", "step", "step_index"],
        "windows": ["steps", "first_step_index", "last_step_index"],
        "copies": ["copies", "copied_bytes"],
        "loops": ["line", "steps", "planned_steps", "batch_size"],
        "evidence": ["finding"],
    }
    for name, columns in whole.items():
        frame = Result(session, None).table(name)
        kinds = {column: str(frame[column].dtype) for column in columns}
        known = {column: kind for column, kind in kinds.items() if frame[column].notna().any()}
        assert set(known.values()) <= {"Int64"}, (name, kinds)
        cells = chain.from_iterable(
            (row[column] for column in columns) for row in read(session, f"{name}.csv")
        )
        assert not [cell for cell in cells if "." in cell]
    assert pandas.api.types.is_integer_dtype(Result(session, None).steps["index"])


def test_a_gap_s_frame_is_joined_by_pandas() -> None:
    pytest.importorskip("pandas")
    result = Result(profiled(), None)
    joined = result.table("gaps").merge(
        result.steps, left_on=["run_id", "step_index"], right_on=["run_id", "index"]
    )

    assert list(joined["index"]) == [41, 42]


@pytest.mark.parametrize("name", NAMES)
def test_columns_have_names_of_their_own(name: str) -> None:
    header = dict(tables.files(profiled()))[name]().splitlines()[0].split(",")

    assert len(header) == len(set(header))
