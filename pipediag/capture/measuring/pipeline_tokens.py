"""Which ids of a table's lookups stand for tokens that no table of tokens in the pipeline has."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from pipediag.capture.runtime import Runtime
from pipediag.capture.signal_handlers import let_pass
from pipediag.capture.step_tables import Passage, Tokens, UntoldTokensError

_LIMIT_NS = 1_000_000_000
"""Own choice, as the script does not go on meanwhile: a table of a million tokens takes up to half
of it."""

_OTHERS = (
    "Tokens are looked up in the pipeline, and not all lookups of a step have their ids from the "
    "same table of tokens."
)
_ANOTHER_WAY = (
    "Tokens are looked up in the pipeline, and the step does not look rows up by the ids as it is "
    "handed them, or is called with the batch and not with its iterator."
)
_NO_TIME = (
    "Tokens are looked up in the pipeline, and what gives the ids of this table was not read any "
    "more: training stands still meanwhile, and the tables of tokens before it took a second."
)


class TokensInFront:
    """Of the embedding tables of one step; training stands still while they are asked for."""

    def __init__(
        self, runtime: Runtime, dataset: Any, now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._pipeline = runtime.pipeline_tokens(dataset)
        self._now_ns = now_ns
        self._until_ns = now_ns() + _LIMIT_NS

    def of(self, passage: Passage) -> Tokens | None:
        """What gives the ids of all lookups; None where no table of tokens does.

        Raises:
            UntoldTokensError: that can't be told, or not in the time that is left.
        """
        if not passage.parts:
            raise UntoldTokensError(_ANOTHER_WAY)
        found = {self._behind(part) for part in passage.parts}
        if len(found) > 1:
            raise UntoldTokensError(_OTHERS)
        return found.pop()

    def _behind(self, part: int) -> Tokens | None:
        if self._now_ns() > self._until_ns:
            raise UntoldTokensError(_NO_TIME)
        try:
            return self._pipeline.behind(part)
        except UntoldTokensError:
            raise
        except Exception as error:
            let_pass(error)
            raise UntoldTokensError(
                f"Tokens are looked up in the pipeline, in a table that could not be read: "
                f"{type(error).__name__}."
            ) from error
