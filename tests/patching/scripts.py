"""Sessions about a few lines of source, whose operations are named by where they stand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipediag.patching.making import make_patch
from pipediag.patching.source import NotPatchableError
from pipediag.session.edits import Change, Edit
from pipediag.session.findings import Patch
from pipediag.session.loops import Loop
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_keras, make_loop, make_session
from tests.records import make_operation, make_pipeline

SCRIPT = "/work/train.py"


def line_of(text: str, needle: str) -> int:
    """The number of the one line that holds the needle."""
    found = [n for n, line in enumerate(text.split("\n"), 1) if needle in line]
    assert len(found) == 1, (needle, found)
    return found[0]


def op(text: str, kind: str, needle: str | None = None, **overrides: Any) -> Operation:
    """An operation of that kind, called on the line with the needle."""
    line = line_of(text, needle if needle is not None else f"{kind}(")
    values = {"file": SCRIPT, "line": line, **overrides}
    return make_operation(values.pop("id", kind), kind, **values)


def chained(*ops: Operation) -> list[Operation]:
    """Each reads from the one before it that is no part of another one's function."""
    linked: list[Operation] = []
    last: list[str] = []
    for one in ops:
        if one.inside_function_of is None:
            linked.append(replace(one, parent_ids=last) if last else one)
            last = [one.id]
        else:
            linked.append(one)
    return linked


def session_of(
    text: str,
    *ops: Operation,
    keras: dict[str, Any] | None = None,
    options: dict[str, Any] | None = None,
) -> Session:
    """The script's session; its loop stands in the last line that calls `fit`, its model's
    `compile` in the last that calls that, where there are such."""
    lines = list(enumerate(text.split("\n"), 1))
    fit = [n for n, line in lines if ".fit(" in line]
    compiled = [n for n, line in lines if ".compile(" in line]
    where = {"compile_file": SCRIPT, "compile_line": compiled[-1]} if compiled else {}
    loop: Loop = make_loop(
        file=SCRIPT,
        line=fit[-1] if fit else None,
        element_spec="(TensorSpec(shape=(None, 200), dtype=tf.int32, name=None), "
        "TensorSpec(shape=(None,), dtype=tf.float32, name=None))",
        keras=make_keras(**{**where, **(keras or {})}),
    )
    pipeline = make_pipeline(ops=chained(*ops), bottleneck_op_id=None, options=options or {})
    session = make_session(pipeline=pipeline, loops=[loop])
    return session.but(script=session.script.but(path=SCRIPT))


def patch(
    text: str, ops: list[Operation], *changes: Change, content: bytes | None = None, **given: Any
) -> tuple[Patch, str]:
    """The changes as a patch of the text, and the text after it, as it was where it has none."""

    def read(path: str) -> bytes:
        if path != SCRIPT:
            raise NotPatchableError("There is one file.")
        return text.encode() if content is None else content

    made, contents = make_patch(
        session_of(text, *ops, **given), [Edit("edit", "an edit", changes)], read
    )
    after = contents.get(SCRIPT, text.encode() if content is None else content)
    return made, after.decode()


def patched(text: str, ops: list[Operation], *changes: Change, **given: Any) -> str:
    """The text after the changes, which must be possible."""
    made, after = patch(text, ops, *changes, **given)
    assert [left.reason for left in made.left_out] == []
    assert made.diff is not None
    compile(after, SCRIPT, "exec")
    return after


def refused(text: str, ops: list[Operation], *changes: Change, **given: Any) -> str:
    """Return why the changes can't be written into the text, which stays as it is."""
    made, after = patch(text, ops, *changes, **given)
    assert made.diff is None
    assert after == text
    (left,) = made.left_out
    return left.reason
