"""The trials of a run: called for by each measured loop that waits, within one budget of time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeVar

from pipediag.errors import PipediagError
from pipediag.facts.limits import INPUT_BOUND
from pipediag.facts.run_gain import gain_for_run, gain_of_all
from pipediag.facts.script import edits_for_held_loop
from pipediag.facts.step import consumer_ms
from pipediag.patching.batch_forms import rows_rewritten
from pipediag.patching.python_calls import rewritten_call
from pipediag.patching.source import NotPatchableError, Source
from pipediag.patching.workspace import Workspace, current_file, made_in_a_loop
from pipediag.runner.child_connection import Ask
from pipediag.runner.progress import DIAGNOSING, OnProgress
from pipediag.session.edits import Change, Move, Replace, RewriteCall, adds_cache
from pipediag.session.findings import Finding
from pipediag.session.ledger import RunGain, RunPart
from pipediag.session.messages import (
    BlockRun,
    Command,
    Prepare,
    Prepared,
    RunBlock,
    TrialsAwaited,
    VariantRefused,
)
from pipediag.session.model import Session
from pipediag.tensorflow_names import BATCHING
from pipediag.trials import Variant, VariantRefusedError
from pipediag.trials.bench import TakenBy
from pipediag.trials.candidates import (
    SHORTER_SHUFFLES,
    Epoch,
    epoch_worth_trying,
    is_of_prediction,
    shorter_shuffles,
    start_ms,
)
from pipediag.trials.schedule import TrialOutcome, run_trials

PREPARE_LIMIT_S = 120.0
"""A first step may trace and compile a large model, and a cache is filled before it."""

BLOCK_LIMIT_S = 60.0

_WAITS, _STEPS = 3, 6
"""Waits for a first batch, and steps, for which there is time beside that. Own choice: building a
variant takes two such waits, and a block three steps at least."""

Expected = TypeVar("Expected", Prepared, BlockRun)


@dataclass
class ChildExecutor:
    """Asks the child for variants and blocks."""

    ask: Ask
    common: tuple[Change, ...] = ()
    """Changes that all variants share, the base too."""
    session: Session | None = None
    """Session of the loop, if its source is asked whether a cache would be filled twice."""
    more_s: float = 0.0
    """Time by which the limits are longer, as the loop's own waits and steps are long."""

    def prepare(self, variant: Variant) -> Prepared:
        changes = (*self.common, *variant.changes)
        if self.session is not None:
            _refuse_caches_that_are_lost(self.session, changes)
            changes = tuple(_with_sources(self.session, changes))
        asked = Prepare(variant.name, changes, variant.check, _rewritten_files(changes))
        return self._answer(asked, Prepared, PREPARE_LIMIT_S + self.more_s)

    def run(self, command: RunBlock) -> BlockRun:
        limit_s = BLOCK_LIMIT_S + 10 * command.seconds + self.more_s
        return self._answer(command, BlockRun, limit_s)

    def _answer(self, command: Command, expected: type[Expected], limit_s: float) -> Expected:
        answer = self.ask(command, limit_s)
        if isinstance(answer, VariantRefused):
            raise VariantRefusedError(answer.reason)
        assert isinstance(answer, expected)
        return answer


def _refuse_caches_that_are_lost(session: Session, changes: Iterable[Change]) -> None:
    """Raise VariantRefusedError for a cache in a pipeline that a loop makes anew for each epoch:
    what it holds in memory goes with its dataset."""
    loop = session.diagnosed_loop()
    if loop is None or (loop.keras is not None and loop.keras.epochs != 1):
        return
    for change in changes:
        if adds_cache(change) and made_in_a_loop(session, change.after):
            raise VariantRefusedError(
                "A loop creates the dataset anew each time, and its cache with it: create the "
                "dataset once, before the loop."
            )


def _with_sources(session: Session, changes: Iterable[Change]) -> Iterator[Change]:
    """Yield the changes, those by which a function takes batches with the files that say how.

    Where a file can't be changed so, the function is tried as it is.
    """
    moved = {op.id for op in session.ops if op.kind in BATCHING}
    for change in changes:
        match change:
            case Move(op_id=op_id, after=after, vectorized=vectorized) if after in moved:
                moved.add(op_id)
            case Replace(op_id=op_id, kind="in_batches"):
                vectorized = False
            case _:
                yield change
                continue
        op, sources = session.operation(op_id), dict[str, str]()
        function = op.function if op is not None else None
        if function is not None and function.row_operations and not vectorized:
            with suppress(NotPatchableError):
                workspace = Workspace(session, current_file)
                for path, written in rows_rewritten(workspace, function).items():
                    sources[path] = workspace.source(path).changed(written).text
        yield replace(change, sources=sources)


def _rewritten_files(changes: Iterable[Change]) -> dict[str, str]:
    """Return the files in which calls are rewritten, as a patch would write them."""
    files: dict[str, Source] = {}
    for change in changes:
        if isinstance(change, RewriteCall):
            try:
                read = files.get(change.file) or Source.of(
                    change.file, Path(change.file).read_bytes()
                )
                files[change.file] = read.changed(rewritten_call(read, change.line))
            except (NotPatchableError, OSError) as error:
                raise VariantRefusedError(str(error)) from None
    return {path: source.text for path, source in files.items()}


OF_EVALUATION = 0.25
"""Share of the budget that is kept for edits of the pipeline of an evaluation. Own choice: one edit
on a pipeline alone takes less than several in a training."""


SPARE_FOR_EPOCHS = 1.5
"""So many times what whole epochs need is given where there is as much: an epoch of a trial took up
to a third longer than those before it. Own choice."""


def edits_of(findings: Iterable[Finding], loop_id: str | None) -> list[Finding]:
    """Return findings whose edits change the pipeline of that loop; None is the diagnosed one."""
    return [
        one
        for one in findings
        if one.edit is not None and one.edit.loop_id == loop_id and not is_of_prediction(one)
    ]


@dataclass
class TrialsOfRun:
    """Called whenever a measured loop waits; keeps what came of its trials."""

    draft: Callable[[], Session]
    """The session of what was measured so far."""
    on_progress: OnProgress
    budget_s: float
    spare_s: float = 0.0
    """Time beside that for whole epochs, where first batches are waited for much of the run."""
    rerun: bool = False
    """True if a loop that is over may be held in a second run of the script."""
    outcomes: dict[str, TrialOutcome] = field(default_factory=dict)
    """Outcomes by the id of the loop."""
    fault: str | None = None
    """A fault of ours."""

    def __post_init__(self) -> None:
        self._given_s = self.budget_s

    def __call__(self, waiting: TrialsAwaited, ask: Ask) -> None:
        """Try what the diagnosis of the waiting loop calls for, in what is left of the budget since
        its step time was known. A fault of ours ends the trials and nothing else."""
        try:
            self._try(waiting, ask)
        except PipediagError as error:
            self.fault = str(error)
        except Exception as error:  # noqa: BLE001
            self.fault = f"The trials stopped with {type(error).__name__}: {error}"

    def _try(self, waiting: TrialsAwaited, ask: Ask) -> None:
        self.on_progress(DIAGNOSING)
        session = self.draft()
        loop = session.diagnosed_loop()
        before = self.outcomes.get(waiting.loop_id)
        # Something may have come of trials before the loop ended under them.
        tried = before is not None and any(
            trial.state != "not_tried" for trial in before.trials.values()
        )
        if loop is None or tried:
            return
        if loop.id != waiting.loop_id:
            self._try_evaluated(session, waiting, ask)
            return
        if waiting.alone and self.rerun and edits_for_held_loop(session):
            return
        epoch = None if waiting.alone else epoch_worth_trying(session)
        budget_s, no_epochs = self._share_of_budget(waiting, session, epoch)
        shared: tuple[Change, ...] = ()
        if epoch is not None and no_epochs is None:
            # An epoch that is to be timed needs its buffers as they are.
            taken_by = TakenBy("epoch", epoch.examples)
        else:
            shared = shorter_shuffles(session)
            taken_by = TakenBy(left_out=(SHORTER_SHUFFLES,) if shared else ())
        if waiting.alone:
            taken_by = replace(taken_by, basis="pipeline", consumer_ms=consumer_ms(session) or 0.0)
        step_ms = session.steps.mean_ms * session.steps.batches_per_call if session.steps else 0.0
        more_s = (_WAITS * (start_ms(session) or 0.0) + _STEPS * step_ms) / 1e3
        # The script's own loop may leave its epoch within a block, and evaluate.
        more_s += 2.0 * sum(_each_s(row) for row in (session.run.parts if session.run else ()))
        executor = ChildExecutor(ask, shared, session, more_s)
        outcome = run_trials(
            loop,
            edits_of(session.findings, None),
            executor,
            budget_s,
            taken_by=taken_by,
            on_event=self.on_progress,
            no_epochs=no_epochs,
            # The clock is one for all processes of a machine.
            began_s=waiting.since_ns / 1e9,
            of_run=lambda one: _speedup(gain_for_run(session, one)),
            of_all=lambda one: _speedup(gain_of_all(session, one)),
        )
        self._keep(outcome, waiting)

    def _try_evaluated(self, session: Session, waiting: TrialsAwaited, ask: Ask) -> None:
        """Try the pipeline of a loop that evaluates, in what its training has left of the time."""
        loop = next((one for one in session.loops if one.id == waiting.loop_id), None)
        findings = edits_of(session.findings, waiting.loop_id)
        if loop is None or not findings:
            return
        rest_ms = loop.evaluation.consumer_ms if loop.evaluation is not None else None
        step_ms = loop.evaluation.step_ms if loop.evaluation is not None else 0.0
        why = "Nothing is evaluated for a trial"
        outcome = run_trials(
            loop,
            findings,
            ChildExecutor(ask, more_s=_STEPS * step_ms / 1e3),
            self.budget_s,
            taken_by=TakenBy("pipeline", None, rest_ms or 0.0, why),
            on_event=self.on_progress,
            began_s=waiting.since_ns / 1e9,
        )
        self._keep(outcome, waiting)

    def _keep(self, outcome: TrialOutcome, waiting: TrialsAwaited) -> None:
        self.budget_s = max(0.0, self.budget_s - outcome.run.used_s)
        given = outcome.run.but(given_s=self._given_s)
        self.outcomes[waiting.loop_id] = replace(outcome, run=given)

    def _share_of_budget(
        self, waiting: TrialsAwaited, session: Session, epoch: Epoch | None
    ) -> tuple[float, str | None]:
        """Return the loop's part, half where later loops may matter more unless whole epochs need
        it, and why whole epochs are not tried although worth it, as a clause."""
        evaluated = [one for one in session.findings if one.edit and one.edit.loop_id is not None]
        part = 1.0 if all(map(is_of_prediction, evaluated)) else 1.0 - OF_EVALUATION
        most_s = part * self.budget_s
        budget_s = most_s / 2 if waiting.more_to_come else most_s
        if epoch is None:
            return budget_s, None
        if epoch.behind is not None:
            return budget_s, f"{epoch.behind} may gain more: apply that first, and analyse again"
        # The budget counts from when pipediag began to look closer.
        needed_s = epoch.budget_s + max(0.0, time.monotonic() - waiting.since_ns / 1e9)
        # The evaluation has what is left where it takes less of the run.
        run = session.run
        less = run is not None and run.seconds_of("epoch_start") > run.seconds_of("evaluation")
        if needed_s > most_s and less:
            part, most_s = 1.0, self.budget_s
        waits = run is not None and run.percent_of("epoch_start") >= INPUT_BOUND.value
        if most_s < needed_s <= most_s + self.spare_s and part == 1.0 and waits:
            # An analysis without an answer about most of the run would be made again.
            most_s, self.spare_s = needed_s, 0.0
        if needed_s <= most_s:
            return max(budget_s, min(most_s, SPARE_FOR_EPOCHS * needed_s)), None
        of_run_s = self._given_s - self.budget_s + needed_s / part
        return budget_s, (
            f"its waits are so long that this takes `--budget {math.ceil(of_run_s)}`, and "
            f"{budget_s:.0f} s were given"
        )


def _each_s(row: RunPart) -> float:
    between = row.part in ("evaluation", "epoch_end")
    return row.seconds / max(1, row.count or 1) if between else 0.0


def _speedup(gain: RunGain | None) -> float | None:
    return gain.speedup if gain is not None else None
