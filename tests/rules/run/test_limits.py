"""What a limit says holds from the limit on: rules of this folder at it, and just short of it."""

from __future__ import annotations

import pytest

from pipediag.rules.run import costly_evaluation, slow_epoch_end, slow_start
from pipediag.rules.run import relevance as of_the_run
from pipediag.session.model import Session
from pipediag.vocabulary import RunPartName
from tests.factories import make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import only


def before(seconds: float, whole_s: float = 100.0) -> Session:
    row = make_part("before_training", seconds, what="in `read`", file="train.py", line=9)
    return make_session(run=make_run(row, whole_s=whole_s), loops=[make_loop()])


def coming(part: RunPartName, times: float) -> Session:
    """A fifth of the run, in so many times."""
    row = make_part(part, 20.0, what="in `do`", file="train.py", line=40, count=int(times))
    return make_session(run=make_run(row), loops=[make_loop()])


LIMITS = [
    Limit(
        slow_start,
        of_the_run.RELEVANT,
        lambda part: only(slow_start, before(part)),
        "fail",
        "informative",
    ),
    Limit(
        slow_start,
        of_the_run.NOTABLE,
        lambda part: only(slow_start, before(part)),
        "informative",
        "pass",
    ),
    Limit(
        slow_start,
        of_the_run.SHORT,
        lambda seconds: only(slow_start, before(seconds, whole_s=4.0)),
        "fail",
        "informative",
    ),
    Limit(
        costly_evaluation,
        costly_evaluation.OFTEN,
        lambda times: only(costly_evaluation, coming("evaluation", times)),
        "fail",
        "informative",
    ),
    Limit(
        slow_epoch_end,
        slow_epoch_end.OFTEN,
        lambda times: only(slow_epoch_end, coming("epoch_end", times)),
        "fail",
        "informative",
    ),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_it_holds_from_the_limit_on(limit: Limit) -> None:
    stands(limit)
