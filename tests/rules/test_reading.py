"""Files read or opened in turn, their storage, and tf.data's own optimisations switched off."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.epoch_start import ITERATOR_PAUSES
from pipediag.rules.parallel_maps import DISABLED_DEFAULTS
from pipediag.rules.reading import COLD_FILES, SEQUENTIAL_FILES, SERIAL_FLAT_MAP
from pipediag.rules.registry import run_rules
from pipediag.session.edits import AUTOTUNE, Replace, SetOptions, SetParameters
from pipediag.session.model import Session
from pipediag.session.pipeline import Operation
from tests.factories import make_host, make_loop, make_session
from tests.ledgers import make_part, make_run
from tests.records import make_environment, make_function, make_operation
from tests.rules.sessions import (
    batch,
    cases,
    changes,
    decided,
    decides,
    keeps_up,
    only,
    run,
    session_of,
    source,
)

COLD = make_host(read_bytes_per_s=3.2e6, asked_bytes_per_s=3.2e6)
WARM = {"host": make_host(read_bytes_per_s=0.0, asked_bytes_per_s=3.2e6)}
PACKED = {"file_count": 10, "compression_type": "GZIP"}


def reader(kind: str = "TFRecordDataset", **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "elements": 32.0,
        "self_ms_per_step": 8.0,
        "bytes_per_element": 1000.0,
        "parameters": {"file_count": 10},
    }
    return make_operation("reader", kind, **{**values, **overrides})


def read(host: Any = COLD, **overrides: Any) -> Session:
    return session_of(reader(**overrides), batch(), host=host)


def nested(
    kind: str, calls: int | None = None, /, *inner: Operation, host: Any = COLD, **of_reader: Any
) -> Session:
    opens = make_operation(
        "outer",
        kind,
        line=4,
        elements=32.0,
        self_ms_per_step=8.0,
        parameters={"num_parallel_calls": calls},
    )
    values = {"self_ms_per_step": None, "inside_function_of": "outer", "parameters": {}}
    session = session_of(make_operation("files", "list_files"), opens, batch(), host=host)
    ops = [*session.pipeline.ops, reader(**{**values, **of_reader}), *inner]
    pipeline = session.pipeline.but(ops=ops)
    return session.but(pipeline=pipeline)


def interleaved(files: int) -> object:
    calls = {"cycle_length": files, "num_parallel_calls": -1}
    return ("fail", (Replace("outer", "interleave", calls),))


READS = (SetParameters("reader", {"num_parallel_reads": -1}),)
MAPS_TOO = make_operation("map", "map", self_ms_per_step=7.0, inside_function_of="outer")
NO_WAIT = session_of(reader(), batch(), host=COLD, **keeps_up())


test_files_read_in_turn = decides(
    SEQUENTIAL_FILES,
    {
        "cold": (read(), ("fail", READS)),
        "warm": (read(**WARM), ("informative", READS)),
        "compressed": (read(**WARM, parameters=PACKED), ("fail", READS)),
        "unmeasured": (read(self_ms_per_step=None), ("informative", READS)),
        "one file": (read(parameters={"file_count": 1}), "pass"),
        "a reader without parallel reads": (read(kind="CsvDataset"), "fail"),
        "keeps up": (NO_WAIT, "pass"),
        "flat_map": (nested("flat_map"), interleaved(2)),
        "flat_map that maps": (nested("flat_map", None, MAPS_TOO, self_ms_per_step=0.1), "pass"),
        "interleave": (
            nested("interleave", 1),
            ("fail", (SetParameters("outer", {"num_parallel_calls": -1}),)),
        ),
        "parallel interleave": (nested("interleave", -1), "pass"),
    },
)


# Work in the function of a flat_map


def outer(kind: str = "flat_map", **overrides: Any) -> Operation:
    values: dict[str, Any] = {
        "self_ms_per_step": 8.0,
        "function": make_function(graph_ops={"ReadFile": 1, "DecodePng": 1}),
    }
    return make_operation("images", kind, line=5, **{**values, **overrides})


def flat(*ops: Operation, **overrides: Any) -> Session:
    return session_of(source(), *ops, batch(), **overrides)


def inner(kind: str, **overrides: Any) -> Operation:
    return make_operation("inner", kind, inside_function_of="images", **overrides)


AS_CPUS = (
    Replace("images", "parallel_flat_map", {"cycle_length": 2, "num_parallel_calls": AUTOTUNE}),
)
SIXTEEN = (
    Replace("images", "parallel_flat_map", {"cycle_length": 16, "num_parallel_calls": 16}),
    SetOptions({"threading.private_threadpool_size": 16}),
)
PYTHON = make_function(graph_ops={"PyFunc": 1})


@pytest.mark.parametrize(
    ("session", "edits"),
    [
        (flat(outer()), [AS_CPUS]),
        (flat(outer("interleave")), [AS_CPUS]),
        (flat(outer(function=PYTHON)), [SIXTEEN]),
        (flat(inner("TFRecordDataset"), outer(function=PYTHON), host=None), [SIXTEEN]),
    ],
)
def test_a_function_is_called_for_several_elements_at_once(
    session: Session, edits: list[object]
) -> None:
    findings = run(SERIAL_FLAT_MAP, session)
    assert findings[0].status == "fail"
    assert [changes(finding) for finding in findings] == edits


AROUND = make_operation("around", "interleave", parameters={"num_parallel_calls": 16})


test_a_function_that_is_left_alone = decides(
    SERIAL_FLAT_MAP,
    {
        "Python within": (flat(inner("map", function=PYTHON), outer(function=PYTHON)), "pass"),
        "reads": (flat(outer(), inner("TFRecordDataset")), "pass"),
        "parallel": (flat(outer("interleave", parameters={"num_parallel_calls": -1})), "pass"),
        "called by readers": (flat(AROUND, outer(inside_function_of="around")), "pass"),
        "keeps up": (flat(outer(), **keeps_up()), "pass"),
    },
)


HEADER = make_operation("header", "skip", inside_function_of="outer", parent_ids=["reader"])


def followed(session: Session, kind: str) -> Session:
    """The session with another operation at the end of its pipeline."""
    ops = [*session.pipeline.ops, make_operation("last", kind, parent_ids=["batch"])]
    return session.but(pipeline=session.pipeline.but(ops=ops))


@pytest.mark.parametrize(
    "kind", ["enumerate", "scan", "shard", "skip", "take", "take_while", "window", "zip"]
)
def test_the_order_of_elements_stays_where_another_one_would_give_other_data(kind: str) -> None:
    for rule, session in (
        (SEQUENTIAL_FILES, read()),
        (SEQUENTIAL_FILES, nested("flat_map", None, HEADER)),
        (SERIAL_FLAT_MAP, flat(outer())),
    ):
        assert all(one.edit is not None for one in run(rule, session))
        finding = only(rule, followed(session, kind))
        assert (finding.status, finding.edit) == ("fail", None)
        assert finding.effect_on_results == "not safe here"


@pytest.mark.parametrize(("kind", "count"), [("take", -1), ("skip", 0)])
def test_a_take_or_skip_that_leaves_nothing_out_goes_by_no_order(kind: str, count: int) -> None:
    session = read()
    last = make_operation("last", kind, parent_ids=["batch"], parameters={"count": count})
    ops = [*session.pipeline.ops, last]
    session = session.but(pipeline=session.pipeline.but(ops=ops))
    assert only(SEQUENTIAL_FILES, session).edit is not None


def sequences(*kinds: str) -> Session:
    """Operations behind the first batch, one after the other, before which a shuffle may stand."""
    session = flat(outer())
    ends = {one.id: one for one in session.ops}
    last, ops = ends.pop("batch").parent_ids, [*ends.values()]
    for kind in kinds:
        ops.append(make_operation(f"{kind}{len(ops)}", kind, parent_ids=last))
        last = [ops[-1].id]
    return session.but(pipeline=session.pipeline.but(ops=ops))


@pytest.mark.parametrize(
    ("kinds", "kept"),
    [
        (("batch", "map", "shuffle", "batch"), True),
        (("batch", "padded_batch"), True),
        (("shuffle", "batch", "batch"), False),
        (("batch", "map", "unbatch", "batch"), False),
        (("batch",), False),
    ],
)
def test_elements_of_which_a_batch_makes_sequences_stay_in_order(
    kinds: tuple[str, ...], kept: bool
) -> None:
    findings = run(SERIAL_FLAT_MAP, sequences(*kinds))
    assert all((one.edit is None) is kept for one in findings)


DEFAULTS = "optimization.apply_default_optimizations"
OFF = {"options": {DEFAULTS: False, "deterministic": False}}
DEBUG = {"environment": make_environment(tf_data_debug_mode=True)}
FRAMEWORK = source(made_by_framework=True)


def of(*ops: Operation, pipeline: dict[str, Any] | None = None, **overrides: Any) -> Session:
    return session_of(source(), *(ops or (batch(),)), pipeline=pipeline, **overrides)


def on(*names: str) -> object:
    return ("fail", (SetOptions(dict.fromkeys(names, True)),))


INJECT = "optimization.inject_prefetch"


test_options_that_are_switched_off = decides(
    DISABLED_DEFAULTS,
    {
        "defaults": (of(pipeline=OFF), on(DEFAULTS)),
        "several": (
            of(pipeline={"options": {INJECT: False}, "autotune_enabled": False}),
            on(INJECT, "autotune.enabled"),
        ),
        "keeps up": (of(pipeline=OFF, **keeps_up()), "pass"),
        "of the framework": (session_of(FRAMEWORK, pipeline=OFF), "pass"),
        "debug mode": (make_session(**DEBUG), "fail"),
    },
)


def test_tuning_is_switched_off_where_each_epoch_frees_an_iterator() -> None:
    of_run = make_run(make_part("startup", 20.0), epochs_planned=20)
    finding = only(ITERATOR_PAUSES, make_session(loops=[make_loop(iterators=2)], run=of_run))
    assert changes(finding) == (SetOptions({"autotune.enabled": False}),)
    assert (finding.status, finding.part) == ("informative", "epoch_end")
    gain = finding.evidence.pop("gain_if_half_of_them_pause")
    assert finding.evidence == {"epoch_s": 4.0, "pause_at_most_s": pytest.approx(1.36)}
    # Of 100 s, besides which 20 epochs pause 1.16 s each if all do.
    assert gain == pytest.approx(1.116, abs=0.01)
    assert only(ITERATOR_PAUSES, make_session()).status == "not-applicable"


# Storage: a disk whose files memory will hold later, or a network

MB = 10**6
REMOTE = {"file_count": 10, "remote_storage": "nfs4"}


def host(read_mb: float | None = 90.0, asked_mb: float | None = 100.0) -> Any:
    """A host on which so many MB a second came from disk, of so many that were asked for."""
    return make_host(
        read_bytes_per_s=None if read_mb is None else read_mb * MB,
        asked_bytes_per_s=None if asked_mb is None else asked_mb * MB,
        available_bytes=1000 * MB,
    )


@cases(
    {
        "cold": (read(host()), "informative"),
        "little": (read(host(0.1, 0.1)), "pass"),
        "not counted": (read(host(None, None)), "pass"),
        "keeps up": (NO_WAIT, "pass"),
        "remote": (read(host(), parameters=REMOTE), "pass"),
    },
    "session, status",
)
def test_files_that_come_from_disk(session: Session, status: str) -> None:
    assert only(COLD_FILES, session).status == status


IMAGES = make_operation(
    "images",
    "map",
    elements=32.0,
    self_ms_per_step=320.0,
    latency_ms_per_step=8.0,
    function=make_function(graph_ops={"ReadFile": 1, "DecodePng": 1}),
)


def test_the_findings_on_what_reads_remote_files_name_their_storage() -> None:
    names = source(parameters={"remote_storage": "fuse.gcsfuse"})
    session = session_of(names, IMAGES, batch(), host=host())
    [cache] = [one for one in run_rules(session) if one.rule == "missing-cache"]
    assert cache.op_id == "images"
    assert cache.evidence["remote_storage"] == "fuse.gcsfuse"
    local = run_rules(session_of(source(), IMAGES, batch(), host=host()))
    assert not any("remote_storage" in one.evidence for one in local)


def test_remote_files_are_read_by_more_readers_whatever_the_disk_did() -> None:
    more = (SetParameters("reader", {"num_parallel_reads": 16}),)
    assert decided(SEQUENTIAL_FILES, read(host(0.0), parameters=REMOTE)) == ("fail", more)
