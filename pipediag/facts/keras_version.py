"""Whether a model is one of Keras 3."""

from __future__ import annotations

from pipediag.session.loops import KerasUse, Loop
from pipediag.session.model import Session


def is_legacy(session: Session, loop: Loop | None) -> bool:
    """Whether the loop's model is one of the package `tf_keras`.

    What was imported tells it only where the model was not asked: libraries such as
    `tensorflow_hub` import `tf_keras` beside the Keras that trains.
    """
    known = loop.keras.legacy if loop is not None and loop.keras is not None else None
    return session.environment.legacy_keras if known is None else known


def keras_3(session: Session) -> KerasUse | None:
    """How the diagnosed loop trains; None where it is none of Keras', or one of `tf_keras`."""
    loop = session.diagnosed_loop()
    return None if loop is None or is_legacy(session, loop) else loop.keras
