"""What a limit says holds from the limit on: rules of this folder at it, and just short of it."""

from __future__ import annotations

import pytest

from pipediag.rules.step import (
    batch_callback,
    dense_embedding_update,
    host_overhead,
    padding,
    retracing,
    small_batch,
)
from pipediag.session.host import HotLine
from pipediag.session.loops import Callback
from pipediag.session.model import Session
from tests.factories import (
    make_compute_bound_session,
    make_embedding,
    make_host,
    make_keras,
    make_loop,
    make_session,
)
from tests.records import (
    make_breakdown,
    make_operation,
    make_steps,
)
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import batch, only, session_of, source

HOOK = Callback(name="Logger", file="train.py", line=30, batch_hooks=["on_train_batch_end"])


def in_callback(percent: float) -> Session:
    hot = HotLine(
        file="train.py", line=33, function="on_train_batch_end", percent=percent, thread="main"
    )
    loop = make_loop(keras=make_keras(callbacks=[HOOK]))
    return make_compute_bound_session(loops=[loop], host=make_host(hot_python=[hot]))


def padded(compute: float) -> Session:
    op = make_operation("padded", "padded_batch", line=7, parameters={"batch_size": 32})
    spec = "TensorSpec(shape=(None, None), dtype=tf.int32, name=None)"
    return session_of(
        source(),
        op,
        breakdown=make_breakdown(device_compute=compute),
        loops=[make_loop(element_spec=spec)],
    )


LIMITS = [
    Limit(
        batch_callback,
        batch_callback.CALLBACK_SHARE,
        lambda percent: only(batch_callback, in_callback(percent)),
        "fail",
        "pass",
    ),
    Limit(
        host_overhead,
        host_overhead.OVERHEAD,
        lambda percent: only(host_overhead, make_session(breakdown=make_breakdown(python=percent))),
        "fail",
        "informative",
    ),
    Limit(
        host_overhead,
        host_overhead.LITTLE,
        lambda percent: only(host_overhead, make_session(breakdown=make_breakdown(python=percent))),
        "informative",
        "pass",
    ),
    Limit(
        small_batch,
        small_batch.FIXED_COST,
        lambda percent: only(
            small_batch,
            session_of(source(), batch(32), breakdown=make_breakdown(dispatch=percent)),
        ),
        "fail",
        "informative",
    ),
    Limit(
        small_batch,
        small_batch.BATCH,
        lambda size: only(
            small_batch,
            make_session(
                steps=make_steps(batch_size=int(size)),
                breakdown=make_breakdown(dispatch=60.0),
                pipeline=None,
            ),
        ),
        "pass",
        "fail",
    ),
    Limit(
        padding, padding.AT_MOST, lambda part: only(padding, padded(part)), "informative", "pass"
    ),
    Limit(
        retracing,
        retracing.RETRACES,
        lambda times: only(retracing, make_session(steps=make_steps(retraces=int(times)))),
        "fail",
        "pass",
    ),
    Limit(
        retracing,
        retracing.COMPILE,
        lambda part: only(retracing, make_session(breakdown=make_breakdown(compile=part))),
        "fail",
        "pass",
    ),
    Limit(
        dense_embedding_update,
        dense_embedding_update.LARGE,
        lambda mb: only(
            dense_embedding_update,
            make_session(embeddings=[make_embedding(table_bytes=int(mb * 1e6), update="dense")]),
        ),
        "informative",
        "pass",
    ),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_it_holds_from_the_limit_on(limit: Limit) -> None:
    stands(limit)
