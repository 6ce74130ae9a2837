"""An executor whose variants run as fast as a test says, on a clock that only it moves."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pipediag.session.edits import Edit, SetModel, SetParameters
from pipediag.session.findings import Finding
from pipediag.session.messages import BlockRun, Prepared, RunBlock
from pipediag.trials import ExecutorLostError, Variant, VariantRefusedError
from pipediag.trials.schedule import TrialOutcome, run_trials
from pipediag.vocabulary import EffectOnResults, FindingStatus
from tests.factories import make_session

BATCH = 32


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class FakeExecutor:
    """Base steps take `step_ms`; a variant's speed is the product of those of its edits."""

    speeds: dict[str, float] = field(default_factory=dict)
    together: dict[str, float] = field(default_factory=dict)
    """Speeds of variants with several edits, where they are not the product."""
    step_ms: float = 2.0
    noise: float = 0.02
    drift: Callable[[float], float] = lambda _now: 1.0
    """Factor on every step by the time of day."""
    warmup_s: float = 0.1
    prepare_s: float = 0.5
    refuse_prepare: dict[str, str] = field(default_factory=dict)
    refuse_block: dict[str, tuple[int, str]] = field(default_factory=dict)
    """By variant: from which of its blocks on it fails, and why."""
    lose_block: dict[str, int] = field(default_factory=dict)
    pull_step_ms: float = 1.0
    first_call_ns: dict[str, int] = field(default_factory=dict)
    """By variant: what its first step takes, when it is prepared."""
    first_step_ns: int | None = None
    """What a block's first step takes, of any variant."""
    same_elements: dict[str, int] = field(default_factory=dict)
    """By variant: elements that were the same in two passes."""
    clock: Clock = field(default_factory=Clock)
    seed: int = 7

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        self.calls: list[tuple[str, str]] = []
        self.prepared: list[Variant] = []
        self.lost_by = ExecutorLostError("It was killed by the kernel.")
        self._gone = False

    def prepare(self, variant: Variant) -> Prepared:
        self._enter("prepare", variant.name)
        self.clock.now += self.prepare_s
        if variant.name in self.refuse_prepare:
            raise VariantRefusedError(self.refuse_prepare[variant.name])
        self.prepared.append(variant)
        same = self.same_elements.get(variant.name)
        return Prepared(variant.name, self.first_call_ns.get(variant.name), same)

    def count(self, kind: str, variant: str) -> int:
        return self.calls.count((kind, variant))

    def run(self, command: RunBlock) -> BlockRun:
        name, kind = command.variant, "pull" if command.alone else "block"
        self._enter(kind, name)
        assert name in {one.name for one in self.prepared}, "a block before prepare"
        if self.count(kind, name) >= self.lose_block.get(name, 10**9):
            self._lose()
        fails_from, reason = self.refuse_block.get(name, (10**9, ""))
        if self.count(kind, name) >= fails_from:
            raise VariantRefusedError(reason)
        base_ms = self.pull_step_ms if command.alone else self.step_ms
        step_s = base_ms / 1e3 / self.speed(name) * self.drift(self.clock.now)
        step_s *= 1.0 + abs(self._random.gauss(0.0, self.noise))
        batches = max(5, round(command.seconds / step_s))
        self.clock.now += self.warmup_s + batches * step_s
        elapsed_ns = int(batches * step_s * 1e9)
        return BlockRun(name, batches, batches * BATCH, elapsed_ns, self.first_step_ns)

    def speed(self, name: str) -> float:
        if name in self.together:
            return self.together[name]
        product = 1.0
        for one in name.split(" + "):
            product *= self.speeds.get(one, 1.0)
        return product

    def _enter(self, kind: str, name: str) -> None:
        self.calls.append((kind, name))
        if self._gone:
            raise ExecutorLostError("It is gone already.")

    def _lose(self) -> None:
        self._gone = True
        raise self.lost_by


def make_edit(edit: str, **overrides: Any) -> Edit:
    made = Edit(
        id=edit,
        label=f"try {edit}",
        changes=(SetParameters(op_id=edit, parameters={"num_parallel_calls": -1}),),
        check="equal",
    )
    return replace(made, **overrides)


def make_finding(
    edit: str | Edit,
    gain: float | None = 2.0,
    *,
    status: FindingStatus = "fail",
    effect: EffectOnResults = "same results",
) -> Finding:
    made = make_edit(edit) if isinstance(edit, str) else edit
    return Finding(
        rule=made.id,
        title="A title",
        status=status,
        severity="warn",
        advice="Do this.",
        effect_on_results=effect,
        speedup_at_most=gain,
        edit=made,
    )


def made(findings: Sequence[Finding | Edit | str]) -> list[Finding]:
    """Return findings; a name stands for an edit of that name, so `"ab"` are two."""
    return [one if isinstance(one, Finding) else make_finding(one) for one in findings]


def try_edits(
    executor: FakeExecutor,
    findings: Sequence[Finding | Edit | str],
    budget_s: float = 60.0,
    **options: Any,
) -> TrialOutcome:
    options = {"clock": executor.clock, **options}
    return run_trials(
        make_session().diagnosed_loop(), made(findings), executor, budget_s, **options
    )


MODEL_CHANGE = (SetModel(settings={"jit_compile": True}),)
