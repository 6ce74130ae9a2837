"""What the tables and the chart say of blocks, and what fits into memory; nothing is timed here."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

from benchmarks import embedding_loss, embedding_update
from benchmarks.embedding_loss import ADAM, ARMS, FASTER, LAZY, Curve, corpus
from benchmarks.embedding_update import OPTIMIZERS, Row, bytes_needed, chart, markdown, timed
from benchmarks.line_chart import Line, Panel, Scale, line_chart
from benchmarks.update_arms import Block, Framework, Plan

ADAM_OF_KERAS = OPTIMIZERS[0]
FRAMEWORK = Framework("3.11", "2.21", "3.15", [])


def row(**ms: list[float]) -> Row:
    return Row(1000, "layer", ADAM_OF_KERAS, ms, {})


def plan(rows: int = 1000, lookup: str = "layer") -> Plan:
    return Plan("Adam", {}, [], rows, 64, lookup, 3, 0.1)


def test_the_ratio_is_taken_round_by_round() -> None:
    ratio = row(keras=[10.0, 40.0, 20.0], lazy=[5.0, 10.0, 10.0]).ratio
    assert ratio is not None
    assert (ratio.median, ratio.rounds) == (2.0, 3)
    assert row(keras=[10.0], lazy=[]).ratio is None


def test_the_table_says_what_did_not_fit() -> None:
    alone = Row(1000, "rows", ADAM_OF_KERAS, {"lazy": [2.0, 4.0]}, {"keras": "needs 20 GB"})
    said = markdown([row(keras=[4.0, 4.0], lazy=[2.0, 2.0]), alone], "Example CPU")
    assert said.startswith("Example CPU\n\nWith Keras' Embedding:\n")
    assert "| 1,000 | Adam | 4.00 | 2.00 | 2.00x [2.00, 2.00] |" in said
    assert said.endswith("| 1,000 | Adam | needs 20 GB | 3.00 | - |\n")


def test_dense_updates_need_temporaries_as_large_as_the_table() -> None:
    table = 1000 * 64 * 4
    assert bytes_needed(ADAM_OF_KERAS, plan(), "keras") == 8 * table
    assert bytes_needed(ADAM_OF_KERAS, plan(), "lazy") == 4 * table
    assert bytes_needed(ADAM_OF_KERAS, plan(lookup="rows"), "lazy") == 3 * table


def test_the_brief_way_has_rounds_enough_for_an_interval_and_is_written_line_by_line(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table, plot = tmp_path / "table.md", tmp_path / "plot.svg"
    written: list[int] = []

    def run(plan: Plan) -> tuple[Framework, list[Block]]:
        written.append(len(table.read_text("utf-8").splitlines()) if table.exists() else 0)
        rounds = range(plan.rounds)
        return FRAMEWORK, [Block(arm, number, 1.0) for number in rounds for arm in plan.arms]

    monkeypatch.setattr(embedding_update, "run", run)
    arguments = ["--brief", "--lookup", "rows", "--table", str(table), "--plot", str(plot)]
    done = CliRunner().invoke(embedding_update.main, arguments)

    assert done.exit_code == 0, done.output
    assert len(written) == 4 * 4
    assert written == sorted(set(written))
    assert "6 rounds of 0.3 s a block" in table.read_text("utf-8")
    assert table.read_text("utf-8").count("| 1.00x [1.00, 1.00] |") == 16
    ElementTree.parse(plot)


@pytest.mark.parametrize(
    ("tables_free", "groups", "missing"),
    [
        (20, [["keras", "lazy"]], {}),
        (11, [["keras"], ["lazy"]], {"ratio": "not side by side"}),
        (6, [["lazy"]], {"keras": "needs 2 GB", "ratio": "not side by side"}),
        (1, [], {"keras": "needs 2 GB", "lazy": "needs 1 GB", "ratio": "not side by side"}),
    ],
)
def test_arms_that_do_not_fit_together_are_run_alone(
    tables_free: int,
    groups: list[list[str]],
    missing: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ran: list[list[str]] = []

    def run(plan: Plan) -> tuple[Framework, list[Block]]:
        ran.append(plan.arms)
        return FRAMEWORK, [Block(arm, 0, 1.0) for arm in plan.arms]

    rows = 1_000_000
    free = SimpleNamespace(available=tables_free * rows * 64 * 4)
    monkeypatch.setattr(embedding_update, "run", run)
    monkeypatch.setattr(embedding_update.psutil, "virtual_memory", lambda: free)
    _, told = timed(ADAM_OF_KERAS, plan(rows))
    assert ran == groups
    assert told.missing == missing
    assert told.ratio is None


def test_the_chart_has_a_line_for_each_arm_and_one_legend() -> None:
    rows = [
        Row(size, lookup, ADAM_OF_KERAS, {"keras": [size / 1e3], "lazy": [1.0]}, {})
        for size in (1000, 100_000)
        for lookup in ("layer", "rows")
    ]
    drawn = ElementTree.fromstring(chart(rows))
    words = [text.text for text in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert words.count("Adam, Keras") == words.count("Adam, row-wise") == 1
    assert {"With Keras' Embedding", "With a lookup of rows alone", "100,000"} <= set(words)
    strokes = [path.get("stroke") for path in drawn.iter("{http://www.w3.org/2000/svg}path")]
    assert strokes.count(ADAM_OF_KERAS.colour) == 4 + 2


def test_decades_are_even_on_an_axis() -> None:
    scale = Scale(0, 2, 100.0, 300.0)
    assert [scale(value) for value in scale.decades] == [100.0, 200.0, 300.0]
    assert "&lt;b&gt;" in line_chart(
        [Panel("<b>", (Line("a", "#000", False, ((1, 1), (9, 2))),))], "x", "y"
    )


def test_a_corpus_is_set_by_its_seed_and_pairs_words_of_a_topic() -> None:
    training, held_out = corpus(1, 300, 50)
    again, _ = corpus(1, 300, 50)
    assert (training.words == again.words).all()
    assert training.candidates.shape == training.labels.shape == (300, 5)
    assert training.labels.sum(axis=1).tolist() == [1.0] * 300
    assert len(held_out.words) == 50


def test_losses_are_compared_epoch_by_epoch_and_at_their_best() -> None:
    curves = [
        Curve(seed, {ADAM: [0.5, 0.2, 0.4], LAZY: [1.0, 0.4, 0.2], FASTER: [0.5, 0.2, 0.2]})
        for seed in range(2)
    ]
    lines = embedding_loss.markdown(curves, "Head").splitlines()
    assert lines[2].count("|") == len(ARMS) + 4
    assert (
        lines[4] == "| 1 | 0.5000 | 1.0000 | 0.5000 | 2.000 [2.000, 2.000] | 1.000 [1.000, 1.000] |"
    )
    assert lines[-1].startswith("| best of each | 0.2000 | 0.2000 | 0.2000 | 1.000")
