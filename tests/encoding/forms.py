"""A session as it is read, and every form of what check, compare and history say of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pipediag.comparison import compare
from pipediag.comparison import formats as comparison_formats
from pipediag.errors import PipediagError
from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate, evaluate_runs
from pipediag.gate.formats import NAMES, render
from pipediag.history import formats as history_formats
from pipediag.history.store import opened
from pipediag.session.model import Session
from pipediag.session.store import load_session
from tests.comparison.sides import run_of
from tests.encoding.test_malformed_sessions import LIMITED

ENVIRONMENT = run_of().environment


def read(file: Path) -> tuple[Session | None, str]:
    """The session, or the sentence that refuses it."""
    try:
        return load_session(file), ""
    except PipediagError as error:
        return None, str(error)


def all_forms(session: Session, folder: Path) -> Iterator[tuple[str, str]]:
    """Their names and texts."""
    for config in (GateConfig(fail_on="warn"), LIMITED):
        results = [evaluate(session, config), evaluate_runs([session] * 3, config)]
        yield from ((name, render(name, results)) for name in NAMES)
    here = session.model_copy(update={"environment": ENVIRONMENT})
    for base, head in (([run_of()], [here]), ([here] * 3, [run_of()] * 3), ([here], [here])):
        for ratios_only in (False, True):
            found = compare(base, head, ratios_only=ratios_only, labels=(here.script.path,) * 2)
            yield from (
                (name, comparison_formats.render(name, found))
                for name in ("html", "json", "markdown", "text")
            )
    with opened(folder / "h.sqlite", create=True) as history:
        history.add(session, session.script.path)
        series = history.series()
    yield from ((name, history_formats.render(name, series)) for name in ("html", "text"))
