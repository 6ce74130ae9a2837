"""A distribution strategy that trains one replica."""

from __future__ import annotations

from pipediag.rules.rule import Meta
from pipediag.session.findings import Finding
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.vocabulary import Scalar

META = Meta(
    id="lone-replica",
    name="Lone replica",
    title_failed="A distribution strategy trains on one of several GPUs",
    title_informative="A distribution strategy has one replica, and nothing to distribute",
    title_passed="The training is distributed over several replicas",
    looks_at="The strategy that distributes the loop's dataset, its replicas, and the GPUs that "
    "TensorFlow sees.",
    why="With one replica nothing is divided. Keras 3 leaves XLA off under any strategy where "
    "`jit_compile` is left to it, and draws a batch in each `fit` that is not trained on.",
    edit="The strategy without a list of devices, where there are several GPUs; otherwise no "
    "strategy.",
    cost="More replicas divide the batch: take a larger one, and tune the learning rate again.",
    bound="None: another number of replicas was not measured.",
    needs=("loop",),
    thresholds=(),
    severity="warn",
    effect_on_results="changes a hyper-parameter",
    untried="A strategy is chosen before the model is made.",
)
_DIVIDES_NOTHING = ("OneDeviceStrategy", "OneDeviceStrategyV1")
"""Made for one device, by its name."""


def check(session: Session) -> list[Finding]:
    """One finding on the diagnosed loop."""
    loop = session.diagnosed_loop()
    assert loop is not None
    if loop.strategy is None:
        return [META.finding("not-applicable", "No strategy distributes the training.")]
    gpus = sum(device.kind.upper() == "GPU" for device in session.environment.devices)
    evidence: dict[str, Scalar] = {
        "strategy": loop.strategy,
        "replicas": loop.replicas,
        "gpus": gpus,
    }
    place = (loop.file, loop.line)
    if loop.replicas > 1:
        return [META.finding("pass", "", place=place, evidence=evidence)]
    if gpus > 1 and loop.strategy not in _DIVIDES_NOTHING:
        advice = (
            f"`{loop.strategy}` trains one replica, while TensorFlow sees {gpus} GPUs: make it "
            "without a list of devices, or with all of them, and take a batch as many times as "
            "large."
        )
        return [META.finding("fail", advice, place=place, evidence=evidence)]
    return [META.finding("informative", _alone(loop), place=place, evidence=evidence)]


def _alone(loop: Loop) -> str:
    xla = (
        " Keras leaves XLA off under it: without it, or with `jit_compile=True`, a GPU's step may "
        "be compiled."
        if loop.keras is not None and not loop.keras.jit_compile
        else ""
    )
    return f"`{loop.strategy}` has one replica, so it divides nothing: train without it.{xla}"
