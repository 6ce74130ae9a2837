"""Functions of the script that run other code in a trial."""

from __future__ import annotations

import pytest

from pipediag.capture.replay import NotReplayableError
from pipediag.capture.replay.rewriting import other_code
from pipediag.session.edits import CompileFunction


def draws_and_steps() -> None:
    """Asks for its batch itself: a step begins within it, and so does a trial."""
    code = draws_and_steps.__code__
    change = CompileFunction(code.co_filename, code.co_firstlineno, code.co_name)
    other_code([change], {}, pytest.fail)


def test_a_function_in_which_a_step_begins_is_not_compiled() -> None:
    with pytest.raises(NotReplayableError, match="is running"):
        draws_and_steps()
