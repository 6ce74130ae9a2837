from __future__ import annotations

import csv
import io

import pytest

from pipediag.reporters.tables import csv as tables
from pipediag.session.embedding_cost import FusedParts, PartName
from pipediag.session.ledger import RunGain
from pipediag.session.model import Session
from tests import factories
from tests.reporters import sessions, trial_sessions
from tests.rules.ids import make_ids

NAMES = [
    "run.csv",
    "breakdown.csv",
    "loops.csv",
    "windows.csv",
    "steps.csv",
    "pipeline.csv",
    "embeddings.csv",
    "findings.csv",
    "evidence.csv",
    "trials.csv",
    "gaps.csv",
    "devices.csv",
    "copies.csv",
    "host.csv",
    "hot_python.csv",
]


def read(session: Session, name: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(dict(tables.files(session))[name]())))


def test_one_table_a_file() -> None:
    assert [name for name, _ in tables.files(factories.make_session())] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_an_empty_table_still_has_its_header(name: str) -> None:
    text = dict(tables.files(sessions.nothing_measured()))[name]()

    assert text.count("\n") == 1
    assert len(text.split(",")) >= 5


def test_rows_are_the_session_s() -> None:
    session = factories.make_session()

    assert [float(row["duration_ms"]) for row in read(session, "steps.csv")] == [10.0] * 40
    assert [row["id"] for row in read(session, "pipeline.csv")] == [
        "from_tensor_slices_0",
        "map_0",
        "batch_0",
        "tf_prefetch_0",
    ]
    assert read(session, "gaps.csv")[0]["device"] == "CPU"
    assert read(session, "host.csv")[0]["tf_data_cpu_percent_of_a_core"] == "95.0"


def test_embeddings_are_a_table_with_the_ids_that_were_seen() -> None:
    ids = make_ids(outside=3, incomplete="1 of 2 lookups was not told.")
    seen = factories.make_embedding(ids=ids, update="dense", lookups=2)
    unseen = factories.make_embedding(layer="other", ids_missing="A loop.")
    first, second = read(factories.make_session(embeddings=[seen, unseen]), "embeddings.csv")

    assert (first["layer"], first["dtype"], first["ids_dtype"]) == ("embedding", "float32", "int64")
    assert (first["update"], first["lookup_places"]) == ("dense", "2")
    assert (first["lookups_per_step"], first["largest_id"], first["outside"]) == (
        "1000.0", "999", "3"
    )  # fmt: skip
    assert first["ids_incomplete"] == "1 of 2 lookups was not told."
    assert (second["layer"], second["batches"], second["ids_missing"]) == ("other", "", "A loop.")


def test_a_table_that_is_read_as_a_whole_need_not_be_copied() -> None:
    read_alone = factories.make_embedding(copied_on_lookup=True, copied_bytes_per_step=0)
    copied = factories.make_embedding(copied_on_lookup=True, copied_bytes_per_step=480)
    unknown = factories.make_embedding(copied_on_lookup=None, copied_bytes_per_step=None)
    session = factories.make_session(embeddings=[read_alone, copied, unknown])
    rows = read(session, "embeddings.csv")

    assert [one["copied_on_lookup"] for one in rows] == ["false", "true", ""]
    assert [one["read_whole_on_lookup"] for one in rows] == ["true", "true", ""]


def test_what_each_part_of_a_table_takes_stands_beside_it() -> None:
    told = factories.make_embedding()
    untold = factories.make_embedding(layer="other")
    cost = factories.make_embedding_cost(("update", 4.0), ("lookup", 1.0), ("rest", 2.0))
    session = factories.make_session(embeddings=[told, untold], embedding_cost=cost)
    first, second = read(session, "embeddings.csv")

    assert (first["update_ms"], first["lookup_ms"], first["copy_ms"]) == ("4.0", "1.0", "0.0")
    assert second["update_ms"] == second["copy_ms"] == ""


def test_what_xla_fused_with_other_parts_is_no_zero() -> None:
    fused = FusedParts(
        parts=[PartName(part="lookup", layer="embedding"), PartName(part="rest")],
        ms=2.0,
        percent=20.0,
    )
    cost = factories.make_embedding_cost(("update", 6.0), ("not_told", 2.0), fused=[fused])
    session = factories.make_session(embeddings=[factories.make_embedding()], embedding_cost=cost)
    (row,) = read(session, "embeddings.csv")

    assert (row["update_ms"], row["lookup_ms"], row["copy_ms"]) == ("6.0", "", "0.0")


def test_the_ledger_is_a_table() -> None:
    rows = read(factories.make_session(run=factories.make_run()), "run.csv")

    assert [row["part"] for row in rows] == [
        "startup",
        "before_training",
        "before_training",
        "steps",
        "epoch_end",
    ]
    assert rows[-1]["what"] == "the callback Save"
    assert (rows[-1]["percent"], rows[-1]["ci95_percent_low"]) == ("50.0", "49.0")
    assert rows[0]["ci95_percent_low"] == rows[2]["line"] == ""


def test_a_finding_says_what_it_comes_to_for_the_run() -> None:
    gain = RunGain(
        speedup=1.25, ci95=(1.2, 1.3), before_s=20, after_s=16, basis="measured", scope="run"
    )
    finding = factories.make_finding(for_run=gain)

    (row,) = read(factories.make_session(findings=[finding]), "findings.csv")

    assert (row["run_speedup"], row["run_speedup_low"], row["run_after_s"]) == (
        "1.25",
        "1.2",
        "16.0",
    )
    assert (row["part"], row["run_basis"]) == ("steps", "measured")


def test_missing_is_an_empty_cell_and_truth_is_spelled() -> None:
    rows = read(factories.make_session(), "pipeline.csv")

    assert [row["bottleneck"] for row in rows] == ["false", "true", "false", "false"]
    assert read(factories.make_session(), "findings.csv")[0]["trial_state"] == "not_tried"


def test_quotes_line_ends_and_commas_come_back() -> None:
    advice = 'say "a, b"\nand c'
    session = factories.make_session(findings=[factories.make_finding(advice=advice)])

    assert read(session, "findings.csv")[0]["advice"] == advice


def test_findings_say_which_edit_was_tried_and_what_came_of_it() -> None:
    rows = {row["rule"]: row for row in read(trial_sessions.everything_tried(), "findings.csv")}

    tried = rows["parallel-map"]
    assert tried["edit_id"] == "parallel-map:map_0"
    assert tried["edit_label"] == "16 parallel calls on the map in line 12"
    assert tried["trial_state"] == "confirmed"
    assert [float(tried[f"trial_speedup{end}"]) for end in ("", "_low", "_high")] == [
        1.94,
        1.88,
        2.01,
    ]
    assert (tried["trial_blocks"], tried["trial_consumer"]) == ("8", "training")
    assert tried["trial_caveats"] == "The shuffle starts anew in each block."
    assert rows["random-map"]["edit_id"] == ""
    assert "random function" in rows["random-map"]["trial_reason"]


def test_one_row_for_each_block_of_a_trial() -> None:
    session = trial_sessions.pipeline_only()
    rows = read(session, "trials.csv")

    assert [(row["arm"], row["round"]) for row in rows[:4]] == [
        ("base", "0"),
        ("parallel-map:map_0", "0"),
        ("base", "1"),
        ("parallel-map:map_0", "1"),
    ]
    assert float(rows[1]["examples_per_s"]) / float(rows[0]["examples_per_s"]) == pytest.approx(
        11.4
    )
    figures = {"arm", "round", "examples_per_s", "batches", "duration_ms", "first_step_ms"}
    assert rows[0].keys() == {"run_id", *figures, "loop", "start_ms"}


def test_blocks_of_an_evaluation_stand_behind_those_of_the_training() -> None:
    session = trial_sessions.pipeline_only()
    assert session.trials is not None
    of_evaluation = session.trials.model_copy(update={"loop_id": "loop_1"})
    session = session.model_copy(update={"evaluation_trials": [of_evaluation]})
    loops = [row["loop"] for row in read(session, "trials.csv")]

    count = len(session.trials.blocks)
    assert loops == [session.trials.loop_id] * count + ["loop_1"] * count
