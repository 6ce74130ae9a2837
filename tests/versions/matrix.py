"""The environments that samples are run in, and which of them a run is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

QUICK_SAMPLES = (
    "blocking_numpy_function",
    "single_call_map",
    "batched_map",
    "host_overhead",
    "eager_fit",
    "batch_callback",
    "large_table_adam",
    "eager_loop",
    "tf_function_iterator",
    "in_graph_loop",
    "train_on_batch",
)
"""They take seconds, and between them have each form of loop, both frameworks' edits, and a near
miss."""
BRIEF_SAMPLES = (
    "blocking_numpy_function",
    "eager_loop",
    "tf_function_iterator",
    "in_graph_loop",
    "train_on_batch",
)
"""One of each form of loop, one with a trial: what continuous integration has time for."""


@dataclass(frozen=True)
class Environment:
    """One Python with one TensorFlow and its Keras."""

    python: str
    tensorflow: str
    keras: str | None = None
    """None where TensorFlow brings its own."""
    loses: tuple[str, ...] = ()
    """Samples whose verdict hangs on missing gap times, whose trial is of Keras 3 only, or that
    this Keras slows down: 3.0 to 3.6 trace anew in each call of `train_on_batch`."""

    @property
    def name(self) -> str:
        keras = f"-keras{self.keras}" if self.keras else ""
        return f"tf{self.tensorflow}{keras}-py{self.python}"

    @property
    def times_its_pipelines(self) -> bool:
        """Below 2.17 no tf.data tells how long it was waited for, and a verdict may stay open."""
        return tuple(map(int, self.tensorflow.split(".")[:2])) >= (2, 17)

    @property
    def requirements(self) -> list[str]:
        keras = [f"keras=={self.keras}"] if self.keras else []
        return [f"tensorflow-cpu=={self.tensorflow}", *keras]


MATRIX = (
    Environment("3.10", "2.14.1", loses=("host_overhead", "large_table_adam")),
    Environment("3.11", "2.15.1", loses=("host_overhead", "large_table_adam")),
    Environment("3.11", "2.16.2", "3.0.5", loses=("host_overhead", "train_on_batch")),
    Environment("3.12", "2.17.1", "3.3.3", loses=("train_on_batch",)),
    Environment("3.10", "2.18.1", "3.5.0", loses=("train_on_batch",)),
    Environment("3.12", "2.20.0"),
    Environment("3.13", "2.21.0"),
)
"""From the oldest to the newest."""


def samples_for(asked: str) -> Sequence[str]:
    """All quick ones where versions are asked for by name, or all of them."""
    return QUICK_SAMPLES if asked else BRIEF_SAMPLES


def chosen(asked: str) -> Sequence[Environment]:
    """The oldest and the newest for "", each for "all", else those that are named, by commas.

    Raises:
        ValueError: a name is of no environment.
    """
    if asked == "all":
        return MATRIX
    if not asked:
        return MATRIX[0], MATRIX[-1]
    by_name = {environment.name: environment for environment in MATRIX}
    names = asked.split(",")
    if unknown := [name for name in names if name not in by_name]:
        raise ValueError(f"no environments: {', '.join(unknown)}; there are {', '.join(by_name)}")
    return [by_name[name] for name in names]
