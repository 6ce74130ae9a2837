from __future__ import annotations

from pipediag.rules.device import launch_bound
from pipediag.rules.device.launch_bound import META as YIELDS
from pipediag.rules.device.small_kernels import META as COMES_FIRST
from pipediag.rules.running import guarded, reinstated, yielding
from pipediag.session.edits import Edit, Remove
from pipediag.session.findings import Finding
from pipediag.session.trials import Trial

METAS = {meta.id: meta for meta in (COMES_FIRST, YIELDS)}
FIRST = COMES_FIRST.finding("fail", "Fuse them.", title="Many are short")
SECOND = YIELDS.finding(
    "fail",
    "Launch less.",
    op_id="map_0",
    place=("train.py", 12),
    evidence={"idle": 3.0},
    title="It waits for GPU:1",
    part="compile",
    edit=Edit("launch-bound", "less", (Remove("map_0"),)),
)


def yielded(*findings: Finding) -> Finding:
    return next(one for one in yielding(findings, METAS) if one.rule == YIELDS.id)


def test_what_yields_stays_where_it_was_and_only_informs() -> None:
    for order in ((FIRST, SECOND), (SECOND, FIRST)):
        found = yielded(*order)
        assert (found.status, found.severity) == ("informative", "info")
        assert (found.edit, found.advice) == (SECOND.edit, SECOND.advice)
        assert found.effect_on_results == SECOND.effect_on_results
        assert (found.file, found.line, found.op_id) == ("train.py", 12, "map_0")
        assert (found.title, found.part) == ("It waits for GPU:1", "compile")
        assert found.evidence == {"idle": 3.0}
        assert found.needs_first == "small-kernels"


def test_it_fails_again_where_a_trial_refuted_what_it_yielded_to() -> None:
    waits = yielded(FIRST, SECOND)
    refuted = FIRST.model_copy(update={"trial": Trial(state="refuted", reason=None)})
    confirmed = FIRST.model_copy(update={"trial": Trial(state="confirmed", reason=None)})
    assert reinstated([refuted, waits], METAS)[1] == SECOND
    assert reinstated([confirmed, waits], METAS)[1] == waits


def test_it_yields_to_nothing_that_has_not_failed() -> None:
    assert yielded(COMES_FIRST.finding("informative", "A few."), SECOND) == SECOND
    passed = YIELDS.finding("pass", "")
    assert yielded(FIRST, passed) == passed


def test_a_rule_that_breaks_says_so_in_its_place() -> None:
    def broken() -> list[Finding]:
        raise KeyError("delay")

    (finding,) = guarded(launch_bound.META, broken)
    assert (finding.status, finding.severity) == ("error", "info")
    assert finding.title == "Launch-bound device: the rule itself failed"
    assert finding.advice == (
        "This rule stopped with KeyError: 'delay'. The other findings stand; please report it with "
        "the session.json."
    )
