"""Facts that the hooks on frameworks exchange with those who measure and try."""

from __future__ import annotations

from dataclasses import dataclass
from types import FrameType, ModuleType
from typing import TYPE_CHECKING, Any

from pipediag.session.recording import ModelNode
from pipediag.vocabulary import LoopRole

if TYPE_CHECKING:
    from pipediag.capture.frameworks.tensorflow.runtime import TensorFlowRuntime
    from pipediag.capture.frameworks.tensorflow.tables.traced_step import TableInStep, TracedTables

    Runtime = TensorFlowRuntime
    StepTable = TableInStep
    StepTables = TracedTables
else:  # no framework is imported for a type
    Runtime = StepTable = StepTables = Any


Trainer = ModuleType
"""A framework's facts about its training: the functions of keras/facts.py."""


@dataclass(frozen=True)
class IteratorModel:
    """Model of a running pipeline.

    `gaps_us`: the consumer's time between requests, oldest first, the last 100 at most.
    """

    gaps_us: list[int]
    nodes: list[ModelNode]
    output_id: int


Settings = dict[str, Any]
"""Settings of `compile` that differ from the user's."""


@dataclass
class TrainersPhase:
    """A method of the trainer's on the stack, with the frame that has its model."""

    role: LoopRole
    method: str
    frame: FrameType


class UnreadableStepError(Exception):
    """A step, or the ids in it, can't be read; the text is a sentence."""
