"""A link to a finding or an operation stays one in the next report."""

from __future__ import annotations

from pipediag.reporters.html.page import Anchors
from pipediag.session.pipeline import Pipeline
from tests import factories, records
from tests.reporters import sessions


def test_a_name_is_made_of_what_stays() -> None:
    findings = [
        factories.make_finding("missing-cache", op_id="map_0"),
        factories.make_finding("missing-cache", op_id="map_0"),
        factories.make_finding("host-overhead", op_id=None),
    ]
    session = factories.make_session(findings=findings)

    anchors = Anchors(session)

    assert [anchors.finding(one) for one in session.findings] == [
        "finding-missing-cache-map_0",
        "finding-missing-cache-map_0--2",
        "finding-host-overhead",
    ]
    assert anchors.operation("map_0") == "operation-map_0"


def test_names_from_elsewhere_are_harmless_and_different() -> None:
    ids = [sessions.HOSTILE, f"{sessions.HOSTILE}<", "x" * 900]
    ops = [records.make_operation(op_id, "map") for op_id in ids]
    anchors = Anchors(
        factories.make_session(pipeline=Pipeline(ops=ops, bottleneck_op_id=None), findings=[])
    )

    names = [anchors.operation(op_id) for op_id in ids]

    assert len(set(names)) == 3
    assert all(name.replace("-", "").replace("_", "").isalnum() for name in names)
    assert max(map(len, names)) < 100
