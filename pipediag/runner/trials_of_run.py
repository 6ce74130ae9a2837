"""Trials as the runner has them: the child that runs them, and the diagnosis that calls for them.

A measured loop waits while the parent works out what would help it; what it answers to each command
is what `pipediag.trials` decides by.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipediag.facts.order import concluded
from pipediag.runner.asking import Ask, ChildGone
from pipediag.runner.progress import Event, OnProgress
from pipediag.session.edits import Change, changes_to_json
from pipediag.session.findings import Finding
from pipediag.session.model import Session
from pipediag.session.trials import Trial
from pipediag.trials.arms import Arm, ArmRefusedError, Block, ExecutorLostError
from pipediag.trials.outcome import TrialOutcome
from pipediag.trials.schedule import run_trials
from pipediag.trials.shorter_shuffles import shorter_fills

PREPARE_LIMIT_S = 120.0
"""A first step may trace and compile a large model, and a cache is filled before it."""

BLOCK_LIMIT_S = 60.0

Draft = Callable[[], Session]


@dataclass
class ChildExecutor:
    """Asks the child for arms and blocks."""

    ask: Ask
    common: tuple[Change, ...] = ()
    """Changes that all arms share, the base too."""
    caveats: Sequence[str] = ()

    def prepare(self, arm: Arm) -> list[str]:
        answer = self._answer(
            {
                "do": "prepare",
                "arm": arm.name,
                "changes": changes_to_json((*self.common, *arm.changes)),
                "check": arm.check,
            },
            PREPARE_LIMIT_S,
        )
        return [*self.caveats, *answer.get("caveats", [])]

    def block(self, arm: Arm, seconds: float) -> Block:
        return self._block("block", arm, seconds)

    def pull(self, arm: Arm, seconds: float) -> Block:
        return self._block("pull", arm, seconds)

    def _block(self, do: str, arm: Arm, seconds: float) -> Block:
        answer = self._answer(
            {"do": do, "arm": arm.name, "seconds": seconds}, BLOCK_LIMIT_S + 10 * seconds
        )
        return Block(answer["examples"], answer["batches"], answer["elapsed_ns"])

    def _answer(self, command: Event, limit_s: float) -> Event:
        try:
            answer = self.ask(command, limit_s)
        except ChildGone as gone:
            raise ExecutorLostError(str(gone)) from None
        if answer["event"] == "arm-refused":
            raise ArmRefusedError(answer["reason"])
        return answer


@dataclass
class TrialDesk:
    """Called whenever a measured loop waits; keeps what came of its trials."""

    draft: Draft
    """The session of what was measured so far."""
    on_progress: OnProgress
    budget_s: float
    run_to_end: bool = False
    look_ahead_s: float = 0.0
    outcomes: dict[str, TrialOutcome] = field(default_factory=dict)
    """By the id of the loop."""
    fault: str | None = None
    """What went wrong on our side."""

    def __call__(self, waiting: Event, ask: Ask) -> None:
        """Try what the diagnosis of the waiting loop calls for, in what is left of the budget.

        It counts from when the loop's step time was known and pipediag began to look closer.

        A fault of ours ends the trials and nothing else: the script and the diagnosis go on.
        """
        try:
            self._try(waiting, ask)
        except Exception as error:  # noqa: BLE001
            self.fault = f"The trials stopped with {type(error).__name__}: {error}"

    def _try(self, waiting: Event, ask: Ask) -> None:
        self.on_progress({"event": "diagnosing"})
        session = self.draft()
        loop = session.diagnosed_loop()
        if loop is None or loop.id != waiting["loop"] or self._has_tried(loop.id):
            return
        fills = shorter_fills(session)
        outcome = run_trials(
            session,
            session.findings,
            ChildExecutor(ask, fills.changes, fills.caveats),
            self._share_of_budget(waiting),
            on_event=self.on_progress,
            consumer_ms=_consumer_ms(session) if waiting["alone"] else None,
            goes_on=self._why_it_goes_on() if waiting["goes_on"] else None,
            # The clock is one for all processes of a machine.
            began_s=waiting["since_ns"] / 1e9,
        )
        self.budget_s = max(0.0, self.budget_s - outcome.run.used_s)
        self.outcomes[loop.id] = outcome

    def _share_of_budget(self, waiting: Event) -> float:
        """Half of it where the script goes on to loops that may matter more than this one."""
        more_to_come = waiting["goes_on"] and not self.run_to_end
        return self.budget_s / 2 if more_to_come else self.budget_s

    def _why_it_goes_on(self) -> str:
        if self.run_to_end:
            return "`--run-to-end` lets the script go on"
        return (
            f"The loop ended within the {self.look_ahead_s:g} s of `--look-ahead`, so the script "
            "was left to end by itself"
        )

    def _has_tried(self, loop_id: str) -> bool:
        """Whether anything came of trials before the loop ended under them."""
        before = self.outcomes.get(loop_id)
        return before is not None and any(
            trial.state != "not_tried" for trial in before.trials.values()
        )


def with_trials(session: Session, outcomes: dict[str, TrialOutcome], missing: str) -> Session:
    """The session with what was tried for its loop; `missing` says why nothing was."""
    loop = session.diagnosed_loop()
    outcome = outcomes.get(loop.id) if loop is not None else None
    if outcome is None:
        missing = (loop.untried if loop is not None else None) or missing
        return session.model_copy(
            update={
                "findings": [_not_tried(finding, missing) for finding in session.findings],
                "combined_missing": missing,
                "pipeline_alone_missing": missing,
                "trials_missing": missing,
            }
        )
    tried = session.model_copy(
        update={
            "combined": outcome.combined,
            "combined_missing": outcome.combined_missing,
            "pipeline_alone": outcome.pipeline_alone,
            "pipeline_alone_missing": outcome.pipeline_alone_missing,
            "trials": outcome.run,
            "trials_missing": None,
        }
    )
    return concluded(tried, [_tried(finding, outcome) for finding in session.findings])


def _tried(finding: Finding, outcome: TrialOutcome) -> Finding:
    trial = outcome.trials.get(finding.edit.id) if finding.edit is not None else None
    return finding if trial is None else finding.model_copy(update={"trial": trial})


def _not_tried(finding: Finding, reason: str) -> Finding:
    if finding.edit is None:
        return finding
    return finding.model_copy(update={"trial": Trial(state="not_tried", reason=reason)})


def _consumer_ms(session: Session) -> float:
    """What a step takes beside its input wait; 0 where that is not known."""
    if session.steps is None or session.breakdown is None:
        return 0.0
    wait = session.breakdown.get("input_wait")
    return session.steps.mean_ms * (1 - (wait.percent if wait else 0.0) / 100)
