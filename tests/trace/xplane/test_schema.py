from __future__ import annotations

from google.protobuf import descriptor_pool

from pipediag.trace.xplane.schema import PACKAGE, message_class


def test_a_space_survives_the_wire() -> None:
    space = message_class("XSpace")()
    plane = space.planes.add(id=3, name=b"/host:CPU")
    event = plane.lines.add(id=7, timestamp_ns=5).events.add(metadata_id=-2, offset_ps=11)
    event.stats.add(metadata_id=1, uint64_value=2**64 - 1)
    again = message_class("XSpace").FromString(space.SerializeToString())
    assert again == space
    assert again.planes[0].lines[0].events[0].stats[0].uint64_value == 2**64 - 1


def test_the_bytes_are_those_of_xplane_proto() -> None:
    # XSpace.planes = 1, XPlane.name = 2, XPlane.lines = 3, XLine.events = 4, XEvent.duration_ps = 3
    data = bytes.fromhex("0a0a120241421a0422021809")
    plane = message_class("XSpace").FromString(data).planes[0]
    assert plane.name == b"AB"
    assert plane.lines[0].events[0].duration_ps == 9


def test_a_statistic_of_zero_is_not_a_missing_one() -> None:
    stat = message_class("XSpace")().planes.add().stats.add(int64_value=0)
    assert stat.WhichOneof("value") == "int64_value"


def test_the_default_pool_stays_free_for_tensorflow() -> None:
    message_class("XSpace")
    names = [f"{PACKAGE}.XSpace", "tensorflow.profiler.XSpace"]
    known = []
    for name in names:
        try:
            known.append(descriptor_pool.Default().FindMessageTypeByName(name))
        except KeyError:
            continue
    assert known == []
