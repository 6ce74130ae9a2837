"""Trials of whole epochs, what a block of one comes to, and what an edit's trace takes more."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import pytest

from pipediag.session.edits import Remove, SetModel, SetParameters
from pipediag.session.messages import BlockRun, RunBlock
from pipediag.session.model import Session
from pipediag.session.trials import TrialBlock
from pipediag.trials import Variant
from pipediag.trials.bench import FIRST_TRACE_S, RETRACED, Bench, TakenBy
from pipediag.trials.candidates import epoch_worth_trying, shorter_shuffles
from pipediag.vocabulary import BASE
from tests.factories import make_keras, make_loop, make_session
from tests.ledgers import make_part, make_run, make_waits
from tests.records import make_operation, make_pipeline, make_steps
from tests.trials.bench import BATCH, MODEL_CHANGE, FakeExecutor, make_edit, make_finding, try_edits

S = 1_000_000_000


def waiting(first_batch_ms: float = 1600.0, ledger: bool = True, **loop: Any) -> Session:
    """Epochs of 20 batches of 32, each of which takes 10 ms, behind a wait."""
    given: dict[str, Any] = {"keras": make_keras(epochs=12, steps_per_epoch=20), **loop}
    each_s = first_batch_ms / 1000.0
    waits = make_waits(10 * each_s, each_s=each_s, first_s=2.0, epochs_planned=10, epochs_seen=2.5)
    return make_session(
        loops=[make_loop(epoch_ends=2, **given)],
        steps=make_steps(mean_ms=10.0, fill_ms=2_000.0),
        run=waits if ledger else None,
    )


def epoch_to_try(session: Session, budget_s: float) -> float | None:
    epoch = epoch_worth_trying(session)
    return epoch.examples if epoch is not None and epoch.budget_s <= budget_s else None


@pytest.mark.parametrize(
    ("wait_ms", "tried"), [(11.0, True), (10.0, False), (5_099.0, True), (5_101.0, False)]
)
def test_waits_have_to_be_a_part_of_the_epoch_and_fit_into_most_of_the_budget(
    wait_ms: float, tried: bool
) -> None:
    """Five percent of 200 ms and the wait; where they are most of it, 85 % of the budget."""
    assert epoch_to_try(waiting(wait_ms), 60.0) == (640.0 if tried else None)


@pytest.mark.parametrize(("wait_ms", "tried"), [(3_000.0, True), (3_001.0, False)])
def test_ten_waits_have_to_fit_into_half_of_the_budget(wait_ms: float, tried: bool) -> None:
    """Steps that take more than four times as long: 1,205 of 10 ms."""
    long = waiting(wait_ms, keras=make_keras(epochs=12, steps_per_epoch=1205))
    findings = [make_finding(make_edit("cache", whole_epoch=True))]
    assert epoch_to_try(long, 60.0) is None, "no edit is about the start of an epoch"
    session = long.but(findings=findings)
    assert (epoch_to_try(session, 60.0) is not None) is tried


@pytest.mark.parametrize(
    ("wait_ms", "edits", "of_epochs", "tried"),
    [
        (1_900.0, 1, False, True),
        (1_900.0, 3, False, False),
        (3_100.0, 3, True, True),
        (3_100.0, 3, False, False),
    ],
)
def test_whole_epochs_leave_time_for_three_edits_unless_the_best_is_about_long_waits(
    wait_ms: float, edits: int, of_epochs: bool, tried: bool
) -> None:
    """Of 3 s of steps; 26 waits of 1.9 s and their steps take longer than 40 s."""
    long = waiting(wait_ms, keras=make_keras(epochs=12, steps_per_epoch=300))
    listed = [make_edit(f"edit{number}", whole_epoch=of_epochs) for number in range(edits)]
    findings = [make_finding(one) for one in listed]
    session = long.but(findings=findings)
    assert (epoch_to_try(session, 40.0) is not None) is tried


def test_to_make_its_iterator_is_a_part_of_an_epochs_start() -> None:
    """6 ms of waiting alone are too little of 200."""
    made = make_part("epoch_start", 1.2, loop_id="loop_0", count=24, what="making the iterator")
    waits = make_part("epoch_start", 2.066, loop_id="loop_0", count=12)
    session = waiting(6.0)

    assert epoch_to_try(session, 60.0) is None
    assert epoch_to_try(session.but(run=make_run(made, waits)), 60.0) == 640.0


def test_where_no_end_of_an_epoch_was_seen_its_start_tells() -> None:
    unseen = make_loop(keras=make_keras(epochs=12, steps_per_epoch=20))
    session = waiting().but(loops=[unseen])
    assert epoch_to_try(session, 60.0) == 640.0


@pytest.mark.parametrize(("epoch_steps", "examples"), [(20, 640.0), (None, None)])
def test_an_own_loops_epoch_is_as_long_as_the_first_one_that_ended(
    epoch_steps: int | None, examples: float | None
) -> None:
    """What the ledger counts as seen may be a little less than that one epoch."""
    session = waiting(kind="eager", keras=None, steps=20, epoch_steps=epoch_steps)
    run = session.run.but(epochs_seen=0.98)
    assert epoch_to_try(session.but(run=run), 60.0) == examples


@pytest.mark.parametrize(
    "session",
    [
        waiting(keras=make_keras(epochs=1, steps_per_epoch=20)),
        waiting(batch_size=None),
        waiting(ledger=False),
    ],
)
def test_steps_are_compared_where_no_epoch_can_be(session: Session) -> None:
    assert epoch_to_try(session, 60.0) is None


def test_a_block_of_an_epoch_is_its_first_step_and_as_many_others() -> None:
    epochs = TakenBy("epoch", 640.0)
    whole = BlockRun("a", 19, 19 * 32, S // 10, first_ns=S, first_batches=1)
    part = BlockRun("a", 8, 8 * 32, 8 * S // 190, first_ns=S, first_batches=1)

    assert epochs.examples_per_s(whole) == pytest.approx(640.0 / 1.1)
    assert epochs.examples_per_s(part) == pytest.approx(640.0 / 1.1)


class SlowStart(FakeExecutor):
    """Each variant waits a second before its first step, but for that with the cache."""

    def run(self, command: RunBlock) -> BlockRun:
        block = super().run(command)
        if command.alone:
            return block
        assert command.epoch_examples == 10 * BATCH
        wait_s = 0.1 if command.variant == "cache" else 1.0
        self.clock.now += wait_s
        return replace(block, first_ns=int(wait_s * 1e9))


def test_an_edit_that_only_shortens_the_wait_is_confirmed_over_epochs() -> None:
    executor = SlowStart(step_ms=10.0)
    edit = make_edit("cache", whole_epoch=True)
    outcome = try_edits(executor, [edit], taken_by=TakenBy("epoch", 10 * BATCH))
    trial = outcome.trials["cache"]

    assert (trial.state, trial.basis) == ("confirmed", "epoch")
    assert trial.speedup == pytest.approx(1.09 / 0.19, rel=0.05)
    assert outcome.combined.basis == "epoch"
    assert outcome.run.blocks[1].first_step_ms in (100.0, 1000.0)


@pytest.mark.parametrize(
    ("wait_ms", "given", "behind"),
    [
        (150.0, {}, True),
        (250.0, {}, False),
        (150.0, {"status": "informative"}, False),
        (150.0, {"effect_on_results": "changes a hyper-parameter"}, False),
    ],
)
def test_an_edit_of_the_model_that_could_gain_most_is_compared_in_blocks_of_steps(
    wait_ms: float, given: dict[str, Any], behind: bool
) -> None:
    model = make_finding(make_edit("model", changes=MODEL_CHANGE), 2.0).but(**given)
    findings = [model, make_finding(make_edit("cache", whole_epoch=True), 1.5)]
    epoch = epoch_worth_trying(waiting(wait_ms).but(findings=findings))
    assert (epoch.behind is not None) is behind


def test_an_edit_of_epochs_that_take_too_long_names_the_budget_that_is_enough() -> None:
    cache = make_finding(make_edit("cache", whole_epoch=True))
    outcome = try_edits(
        FakeExecutor(), [cache, make_finding("map")], no_epochs="this takes `--budget 200`"
    )

    assert "this takes `--budget 200`" in str(outcome.trials["cache"].reason)
    assert outcome.trials["map"].state != "not_tried"


def test_a_shuffle_buffer_holds_what_comes_in_a_quarter_of_a_second() -> None:
    """64 elements in 10 ms are 6,400 in a second; a map's buffer is left alone."""
    sizes = {"of_1": 10**6, "of_64": 10**6, "small": 1_600}
    elements = {"of_1": 1.0, "of_64": 64.0, "small": 64.0}
    ops = [
        make_operation(name, "shuffle", elements=elements[name], parameters={"buffer_size": size})
        for name, size in sizes.items()
    ]
    ops.append(make_operation("map", elements=64.0, parameters={"buffer_size": 10**6}))
    steps = make_steps(mean_ms=10.0)
    found = shorter_shuffles(make_session(pipeline=make_pipeline(ops=ops), steps=steps))
    assert found == (
        SetParameters("of_1", {"buffer_size": 25}),
        SetParameters("of_64", {"buffer_size": 1600}),
    )


SECOND = 1_000_000_000
XLA = SetModel({"jit_compile": True})
GRAPH = SetModel({"run_eagerly": False})
PREFETCHED = Remove("op2")


def block(variant: str, first_step_ms: float | None) -> TrialBlock:
    return TrialBlock(
        arm=variant,
        round=1,
        examples_per_s=1.0,
        batches=5,
        duration_ms=1.0,
        first_step_ms=first_step_ms,
    )


BLOCKS = [block("edit", 100.0), block("edit", 300.0), block(BASE, 500.0), block(BASE, 500.0)]


def bench(blocks: list[TrialBlock] = BLOCKS, **seconds: float) -> Bench:
    names = {"anew": RETRACED.name}
    first_ns = {names.get(one, one): int(taken_s * SECOND) for one, taken_s in seconds.items()}
    begun = (FakeExecutor(), TakenBy(), 60.0, time.monotonic, lambda _: None, 0.0)
    return Bench(*begun, blocks=blocks, first_ns=first_ns)


def test_it_is_what_later_first_steps_and_the_step_as_written_do_not_take() -> None:
    """The first batch is 0.2 s of 2 s, and 0.5 s of the 1 s that the step as written takes."""
    once = bench(edit=2.0, anew=1.0).once(Variant("edit", (XLA,)))
    assert once.seconds == pytest.approx(1.8 - 0.5)
    off_s = (0.2**2 + 0.1**2 + 0.1**2) ** 0.5  # a tenth of each, and half of what waits span
    assert once.off_s == pytest.approx(off_s, abs=1e-4)


def test_a_step_that_was_not_traced_at_all_has_the_first_trace_of_its_process() -> None:
    once = bench(edit=1.2).once(Variant("edit", (GRAPH,)))
    assert once.seconds == pytest.approx(1.0 + FIRST_TRACE_S / 2)
    assert once.off_s > FIRST_TRACE_S / 2


@pytest.mark.parametrize(
    ("variant", "seconds", "blocks"),
    [
        (Variant("edit", (PREFETCHED,)), {"edit": 2.0, "anew": 1.0}, BLOCKS),
        (Variant("edit", (XLA,)), {"edit": 2.0}, BLOCKS),
        (Variant("edit", (XLA,)), {"anew": 1.0}, BLOCKS),
        (Variant("edit", (XLA,)), {"edit": 2.0, "anew": 1.0}, BLOCKS[2:]),
        (Variant("edit", (XLA,)), {"edit": 2.0, "anew": 1.0}, [block("edit", None), *BLOCKS[2:]]),
    ],
)
def test_it_is_not_known(
    variant: Variant, seconds: dict[str, float], blocks: list[TrialBlock]
) -> None:
    assert bench(blocks, **seconds).once(variant) is None


@pytest.mark.parametrize(("prepare_s", "made_anew"), [(0.5, 1), (6.0, 0)])
def test_the_step_as_written_is_made_anew_once_unless_that_takes_the_time_of_rounds(
    prepare_s: float, made_anew: int
) -> None:
    first_ns = {"a": 2 * SECOND, "b": 2 * SECOND, RETRACED.name: SECOND}
    executor = FakeExecutor(
        {"a": 2.0, "b": 3.0}, prepare_s=prepare_s, first_call_ns=first_ns, first_step_ns=SECOND // 4
    )
    edits = [make_edit(name, changes=(SetModel({name: True}),)) for name in "ab"]
    outcome = try_edits(executor, edits)
    assert executor.count("prepare", RETRACED.name) == made_anew
    assert executor.count("block", RETRACED.name) == 0
    assert outcome.trials["a"].state == "confirmed"
    assert (outcome.trials["a"].once_s is not None) is bool(made_anew)
