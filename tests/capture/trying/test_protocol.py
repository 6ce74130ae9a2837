"""The conversation about variants, with a parent, a model and pipelines that are played."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.capture.loops.loop import Stage as InPlace
from pipediag.capture.replay import NotReplayableError
from pipediag.capture.trying import protocol
from pipediag.session.edits import SetModel
from pipediag.session.messages import (
    BlockRun,
    EndTrials,
    Prepare,
    Prepared,
    RunBlock,
    TrialsOver,
    VariantRefused,
)
from tests.capture.instruments import PreemptedError, consumer_of, handles_signals, signal_arrives
from tests.capture.trying.conversation import SECOND, WARM_STEPS, OutOfRangeError, Pipeline, Stage


@pytest.fixture
def stage(monkeypatch: pytest.MonkeyPatch) -> Stage:
    return Stage(monkeypatch)


# What the parent hears.


def test_a_block_counts_what_follows_the_warm_up(stage: Stage) -> None:
    seen: list[InPlace] = []
    stage.parent.looks = lambda: seen.append(stage.consumer.stage)
    stage.parent.block("base", seconds=1)
    trials = stage.prepared()
    stage.step(trials, times=WARM_STEPS + 9)
    assert stage.told == []
    stage.step(trials)

    block = BlockRun("base", 20, 80, SECOND, SECOND // 10, 2, freed_ns=0)
    assert stage.told == [block]
    assert seen == [InPlace.OWN] * 3, "while the parent decides, the script's own iterator is back"


def test_each_block_has_a_fresh_iterator_and_none_runs_between_two(stage: Stage) -> None:
    stage.parent.block("base")
    trials = stage.prepared()
    first = stage.handed_out
    stage.step(trials, times=WARM_STEPS + 9)
    stage.parent.block("base")
    made = Pipeline.made
    stage.step(trials)

    assert (first, stage.handed_out) == ("iterator 3", "iterator 4")
    assert Pipeline.made == made + 1


# A function that is traced.


def test_a_trace_begins_the_warm_up_anew_however_long_it_took(stage: Stage) -> None:
    stage.parent.block("base")
    trials = stage.prepared()
    stage.clock.now += 5 * SECOND
    trials.traced = True
    stage.step(trials, times=1 + WARM_STEPS + 9)
    assert stage.told == []
    stage.step(trials)

    assert stage.told[0].elapsed_ns == SECOND


def test_what_is_traced_at_every_step_does_not_restart_its_variant_for_ever(stage: Stage) -> None:
    stage.parent.block("base")
    trials = stage.prepared()
    made = Pipeline.made
    for _ in range(9):
        trials.traced = True
        stage.step(trials)
    assert Pipeline.made == made + 3
    stage.step(trials, times=WARM_STEPS + 10 - 6)

    assert stage.events == [BlockRun]


# Epochs.


def test_a_new_epoch_goes_on_with_the_variant_and_the_former_one_gets_its_own_iterator(
    stage: Stage,
) -> None:
    stage.parent.block("base")
    trials = stage.prepared()
    next_epoch, variant = consumer_of(stage.loop, ordinal=2), stage.handed_out
    stage.step(trials, next_epoch)

    assert stage.consumer.stage is InPlace.OWN
    assert next_epoch.substitute == variant


# What goes wrong.


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (NotReplayableError("It can't be replayed."), "It can't be replayed."),
        (ValueError("\n the first line\nand more"), "It failed with ValueError: the first line"),
        (ValueError(), "It failed with ValueError"),
        (OutOfRangeError(), "The data came to its end: its source can't be read a second time."),
    ],
)
def test_a_variant_that_can_not_be_made_is_refused_and_the_parent_asks_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: Exception, reason: str
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(protocol, "rebuild", fail)
    stage.parent.prepare("first")
    stage.parent.prepare("second")
    stage.begun()

    assert stage.told == [VariantRefused("first", reason), VariantRefused("second", reason)]
    assert stage.over


def test_a_step_of_a_variant_that_fails_is_made_with_the_pipeline_as_it_is_written(
    stage: Stage,
) -> None:
    stage.parent.block("base")
    trials = stage.prepared()
    variant = stage.handed_out
    assert trials.failed(ValueError("bad record"))
    assert stage.handed_out not in (variant, None)
    assert not trials.failed(ValueError("the pipeline itself"))
    stage.step(trials)

    reason = "It failed with ValueError: bad record"
    assert stage.told == [VariantRefused("base", reason)]
    assert not trials.failed(ValueError("of the script's own iterator"))


def test_what_a_signal_handler_raises_in_a_step_is_the_scripts_and_ends_the_trials(
    stage: Stage,
) -> None:
    stage.parent.block("base")
    trials = stage.prepared()

    with handles_signals():
        with pytest.raises(PreemptedError) as raised:
            signal_arrives()
        assert not trials.failed(raised.value)
    assert stage.consumer.stage is InPlace.OWN
    assert stage.told == [TrialsOver("the script was interrupted in the middle of them")]


def test_ctrl_c_while_the_parent_decides_ends_the_trials(stage: Stage) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    stage.parent.looks = interrupted
    with pytest.raises(KeyboardInterrupt):
        stage.begun()

    assert stage.told == [TrialsOver("the script was interrupted in the middle of them")]


def test_a_step_of_a_model_compiled_otherwise_that_fails_is_told(stage: Stage) -> None:
    stage.parent.block("base")
    trials = stage.prepared()
    stage.step(trials, times=WARM_STEPS + 2)
    stage.step_failed(ValueError("no kernel"))
    stage.step(trials)

    reason = "It failed with ValueError: no kernel"
    assert stage.told == [VariantRefused("base", reason)]


# The end.


@pytest.mark.parametrize("asks_to_end", [True, False])
def test_at_the_end_the_script_has_its_iterator_and_its_model(
    stage: Stage, asks_to_end: bool
) -> None:
    stage.parent.block("base")
    if asks_to_end:
        stage.parent.asks.append(EndTrials())
        stage.parent.prepare("never asked")
    trials = stage.prepared()
    stage.step(trials, times=WARM_STEPS + 9)
    stage.model.used.clear()
    stage.step(trials)

    assert stage.events == [BlockRun]
    assert (stage.over, stage.model.used) == ([False], [{}])
    assert stage.consumer.stage is InPlace.OWN


# The pipeline alone.


def test_without_a_consumer_the_pipeline_is_pulled(stage: Stage) -> None:
    stage.parent.prepare("base")
    stage.parent.pull("base", seconds=1)
    stage.parent.block("base")
    stage.trials().begin(None)

    reason = "The loop is over, so nothing consumes its batches."
    pulled = BlockRun("base", 10, 40, SECOND)
    assert stage.told == [Prepared("base"), pulled, VariantRefused("base", reason)]


def test_a_variant_that_fails_in_its_first_steps_leaves_the_next_block_alone(stage: Stage) -> None:
    stage.parent.prepare("next")
    stage.parent.block("base")
    trials = stage.prepared()
    trials.failed(ValueError("bad record"))
    stage.step(trials, times=WARM_STEPS + 11)

    assert stage.events == [VariantRefused, BlockRun]


def test_a_block_of_a_model_with_longer_calls_begins_with_such_a_call(stage: Stage) -> None:
    """What the call before it took is none of its first step, nor of the first one of the base."""
    longer = SetModel({"steps_per_execution": 8})
    stage.parent.asks.append(Prepare("longer", (longer,), None))
    stage.parent.asks.append(RunBlock("longer", 1.0, epoch_examples=96))
    stage.parent.asks.append(RunBlock("base", 1.0, epoch_examples=96))
    trials = stage.prepared()
    stage.step(trials, times=3)
    assert stage.told == [Prepared("longer")]
    stage.told.clear()
    # Of 24 batches in three calls; the base makes two batches a call, and its block begins late.
    stage.step(trials, times=3)
    assert [(run.variant, run.batches, run.first_batches) for run in block_runs(stage)] == [
        ("longer", 16, 8)
    ]
    stage.step(trials, times=1 + 11)
    assert len(block_runs(stage)) == 1
    stage.step(trials)
    assert [(run.variant, run.batches, run.first_batches) for run in block_runs(stage)][1:] == [
        ("base", 22, 2)
    ]


def block_runs(stage: Stage) -> list[BlockRun]:
    return [one for one in stage.told if isinstance(one, BlockRun)]
