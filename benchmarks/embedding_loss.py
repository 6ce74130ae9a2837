"""Whether a small skip-gram model learns as much with row-wise Adam as with that of Keras.

    python -m benchmarks.embedding_loss [--seeds N] [--epochs N] [--table FILE]

Words of made-up topics, drawn with the frequencies of a language, predict their neighbours. For
each seed, which sets the text and the initial tables, Keras' Adam and LazyAdam, at the same and at
twice the learning rate, train on the same batches in the same order; the loss is that of held-out
pairs after each epoch. No timing.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from benchmarks.comparison import summarise

WORDS, TOPICS, DIM, BATCH = 4000, 40, 32, 256
PAIRS, HELD_OUT, NEGATIVES = 60_000, 10_000, 4
RATE = 0.002
ADAM, LAZY, FASTER = "Keras' Adam", "LazyAdam", "LazyAdam, twice the rate"
ARMS = (ADAM, LAZY, FASTER)
FIRST, EVERY = 3, 5
"""Epochs that the table shows: those before, and every so many."""

Ids = NDArray[np.int32]


@dataclass(frozen=True)
class Pairs:
    """Words with a neighbour, and words that are none; the neighbour comes first."""

    words: Ids
    candidates: Ids

    @property
    def labels(self) -> NDArray[np.float32]:
        return np.repeat([[1.0] + [0.0] * NEGATIVES], len(self.words), axis=0).astype(np.float32)


@dataclass(frozen=True)
class Curve:
    """Held-out losses after each epoch."""

    seed: int
    losses: dict[str, list[float]]


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.option("--seeds", type=click.IntRange(min=2), default=6, show_default=True)
@click.option("--epochs", type=click.IntRange(min=1), default=30, show_default=True)
@click.option("--pairs", type=click.IntRange(min=BATCH), default=PAIRS, show_default=True)
@click.option("--table", type=click.Path(path_type=Path), help="Write a Markdown table.")
def main(seeds: int, epochs: int, pairs: int, table: Path | None) -> None:
    """Train all for each seed and print the losses."""
    curves = [curve(seed, epochs, pairs) for seed in range(seeds)]
    head = (
        f"Skip-gram, {WORDS:,} words of {DIM} numbers, {pairs:,} pairs, batches of {BATCH}, "
        f"learning rate {RATE:g}, {seeds} seeds."
    )
    told = markdown(curves, head)
    click.echo(told)
    if table is not None:
        table.write_text(told, encoding="utf-8")


def curve(seed: int, epochs: int, pairs: int) -> Curve:
    """All trainings of a seed."""
    training, held_out = corpus(seed, pairs, HELD_OUT)
    return Curve(seed, {arm: trained(arm, seed, epochs, training, held_out) for arm in ARMS})


def corpus(seed: int, pairs: int, held_out: int) -> tuple[Pairs, Pairs]:
    """Pairs whose words are of the same topic, with negatives by the words' frequency."""
    random = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, WORDS + 1)
    frequency /= frequency.sum()
    topic_of = random.integers(0, TOPICS, WORDS)
    members = [np.flatnonzero(topic_of == topic) for topic in range(TOPICS)]
    words = random.choice(WORDS, pairs + held_out, p=frequency).astype(np.int32)
    neighbours = np.empty_like(words)
    for topic, own in enumerate(members):
        here = np.flatnonzero(topic_of[words] == topic)
        chances = frequency[own] / frequency[own].sum()
        neighbours[here] = random.choice(own, len(here), p=chances)
    negatives = random.choice(WORDS, (len(words), NEGATIVES), p=frequency)
    candidates = np.column_stack([neighbours, negatives]).astype(np.int32)
    return (
        Pairs(words[:pairs], candidates[:pairs]),
        Pairs(words[pairs:], candidates[pairs:]),
    )


def trained(arm: str, seed: int, epochs: int, training: Pairs, held_out: Pairs) -> list[float]:
    """The held-out loss after each epoch."""
    import keras

    keras.utils.set_random_seed(seed)
    model = skip_gram()
    model.compile(optimizer(arm), keras.losses.BinaryCrossentropy(from_logits=True))
    fitted = model.fit(
        [training.words, training.candidates],
        training.labels,
        batch_size=BATCH,
        epochs=epochs,
        verbose=0,
        validation_data=([held_out.words, held_out.candidates], held_out.labels),
    )
    return [float(loss) for loss in fitted.history["val_loss"]]


def skip_gram() -> Any:
    """Two tables and a product."""
    import keras

    word = keras.Input((), dtype="int32")
    candidates = keras.Input((1 + NEGATIVES,), dtype="int32")
    target = keras.layers.Embedding(WORDS, DIM)(word)
    others = keras.layers.Embedding(WORDS, DIM)(candidates)
    return keras.Model([word, candidates], keras.layers.Dot(axes=(2, 1))([others, target]))


def optimizer(arm: str) -> Any:
    """The optimizer of an arm."""
    import keras

    from pipediag.optimizers import LazyAdam

    if arm == ADAM:
        return keras.optimizers.Adam(RATE)
    return LazyAdam(2 * RATE if arm == FASTER else RATE)


def markdown(curves: Sequence[Curve], head: str) -> str:
    """Mean losses over seeds, and their ratios to that of Keras' Adam with intervals over seeds."""
    titles = [*ARMS, *(f"{arm}: ratio" for arm in ARMS[1:])]
    lines = [head, "", f"| epoch | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for epoch in range(1, len(curves[0].losses[ADAM]) + 1):
        if epoch < FIRST or epoch % EVERY == 0:
            lines.append(_row(str(epoch), [_at(curve, epoch) for curve in curves]))
    lines.append(_row("best of each", [_best(curve) for curve in curves]))
    return "\n".join(lines) + "\n"


def _at(curve: Curve, epoch: int) -> dict[str, float]:
    return {arm: losses[epoch - 1] for arm, losses in curve.losses.items()}


def _best(curve: Curve) -> dict[str, float]:
    return {arm: min(losses) for arm, losses in curve.losses.items()}


def _row(name: str, seeds: Sequence[dict[str, float]]) -> str:
    means = [f"{np.mean([losses[arm] for losses in seeds]):.4f}" for arm in ARMS]
    ratios = [summarise([losses[arm] / losses[ADAM] for losses in seeds]) for arm in ARMS[1:]]
    told = [f"{ratio.median:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]" for ratio in ratios]
    return f"| {' | '.join([name, *means, *told])} |"


if __name__ == "__main__":
    main()
