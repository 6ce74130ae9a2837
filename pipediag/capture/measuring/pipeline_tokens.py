"""Which ids of a table's lookups stand for tokens that no table of tokens in the pipeline has."""

from __future__ import annotations

from typing import Any

from pipediag.capture.runtime import Runtime
from pipediag.capture.signal_handlers import let_pass
from pipediag.capture.step_tables import Passage, Tokens, UntoldTokensError

_OTHERS = (
    "Tokens are looked up in the pipeline, and not all lookups of a step have their ids from the "
    "same table of tokens."
)
_ANOTHER_WAY = (
    "Tokens are looked up in the pipeline, and the step does not look rows up by the ids as it is "
    "handed them, or is called with the batch and not with its iterator."
)


def tokens_behind(runtime: Runtime, dataset: Any, passage: Passage) -> Tokens | None:
    """What gives the ids of all lookups; None where no table of tokens does.

    Raises:
        UntoldTokensError: that can't be told.
    """
    if not passage.parts:
        raise UntoldTokensError(_ANOTHER_WAY)
    try:
        found = {runtime.tokens_behind(dataset, part) for part in passage.parts}
    except UntoldTokensError:
        raise
    except Exception as error:
        let_pass(error)
        raise UntoldTokensError(
            f"Tokens are looked up in the pipeline, in a table that could not be read: "
            f"{type(error).__name__}."
        ) from error
    if len(found) > 1:
        raise UntoldTokensError(_OTHERS)
    return found.pop()
