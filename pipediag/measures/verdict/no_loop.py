"""The sentence for a run without a training loop: what was seen instead, and what is needed."""

from __future__ import annotations

from pipediag.facts.script import cut_short, ending
from pipediag.measures.verdict.wording import place
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.run import OtherProcesses, Script
from pipediag.tensorflow_versions import is_too_old, too_old_sentence

NEEDS = (
    "Pipediag needs a training loop: Keras `fit`, a loop that takes batches from a tf.data "
    "dataset and updates variables with them, or one that calls `train_on_batch`, a tf.function or "
    "a Keras optimizer for each batch."
)

NO_TENSORFLOW = (
    "TensorFlow is not installed beside pipediag. Install the build that you use, or "
    "`pip install 'pipediag[tensorflow]'`, and run this again."
)

BUSY_CPU_S = 1.0
"""Processes that took less together trained nothing: importing TensorFlow alone takes longer."""

_MOST_SEEN = 4


def no_loop_sentence(session: Session) -> str:
    """What was seen instead of a training loop, and what pipediag needs."""
    version = session.environment.tensorflow
    if version is not None and is_too_old(version):
        return f"{too_old_sentence(version)} The script ran without being measured."
    others = _others_sentence(session.other_processes)
    where = " in the script's own process" if others else ""
    what = _seen(session) or _tensorflow_sentence(session, own=bool(others))
    early = cut_short(session.script)
    ended = f" The script ended early: {_how(session.script)}" if early else ""
    return f"No training loop was seen{where}.{ended} {what} {others or NEEDS}"


def _seen(session: Session) -> str | None:
    uses, loops = session.other_uses, session.loops
    seen = [f"{use.what}{place(use.file, use.line)} ({_times(use.count)})" for use in uses]
    seen += [f"{_role(loop)}{place(loop.file, loop.line)} ({loop.steps} batches)" for loop in loops]
    if not seen:
        return None
    more = f" and {len(seen) - _MOST_SEEN} more" if len(seen) > _MOST_SEEN else ""
    return "What was seen: " + "; ".join(seen[:_MOST_SEEN]) + more + "."


def _tensorflow_sentence(session: Session, own: bool) -> str:
    """How far it came with TensorFlow; `own` says that other processes may have come further."""
    if "No module named 'tensorflow'" in (session.script.detail or ""):
        return NO_TENSORFLOW
    if session.script.outcome in ("killed", "timed-out"):
        if session.environment.tensorflow is None:
            return "It had not imported TensorFlow by then."
        return "It had imported TensorFlow by then; no step of a training was recorded yet."
    subject = "That process" if own else "The script"
    if session.environment.tensorflow is None:
        return f"{subject} did not import TensorFlow."
    return f"{subject} imported TensorFlow and took no batch from a dataset."


def _others_sentence(others: OtherProcesses | None) -> str:
    if others is None or others.cpu_s < BUSY_CPU_S:
        return ""
    started = "another process" if others.count == 1 else f"{others.count} other processes"
    return (
        f"It started {started}, with {others.cpu_s:.0f} s of CPU time in all, which pipediag does "
        "not measure: if the training runs there (multiprocessing, subprocess, a launcher), run it "
        "in the main process to have it measured."
    )


def _how(script: Script) -> str:
    if not script.detail:
        return ending(script)
    return script.detail if script.detail.endswith((".", "!", "?")) else f"{script.detail}."


def _role(loop: Loop) -> str:
    if loop.role == "other":
        return f"a loop over a dataset that does not train ({loop.role_reason})"
    return {
        "training": "training",
        "validation": "validation",
        "evaluate": "`evaluate`",
        "predict": "`predict`",
        "adapt": "`adapt`",
        "preview": "a preview of some batches",
        "preparation": "a pass over a dataset before training",
        "reading": "a pass over a dataset without a model",
    }[loop.role]


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"
