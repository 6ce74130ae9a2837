from __future__ import annotations

from pipediag.rules.device_idle import LAUNCH_BOUND, SMALL_KERNELS
from pipediag.rules.registry import guarded, reinstated, yielding
from pipediag.session.edits import Edit, Remove
from pipediag.session.findings import Finding
from pipediag.session.trials import Trial

METAS = {SMALL_KERNELS.id: SMALL_KERNELS}
FIRST = SMALL_KERNELS.finding("fail", "Fuse them.", title="Many are short")
SECOND = LAUNCH_BOUND.finding(
    "fail",
    "Launch less.",
    op_id="map_0",
    place=("train.py", 12),
    evidence={"idle": 3.0},
    title="It waits for GPU:1",
    part="compile",
    edit=Edit("device-idle", "less", (Remove("map_0"),)),
)


def yielded(first: Finding, second: Finding) -> Finding:
    return yielding([(SMALL_KERNELS, first), (LAUNCH_BOUND, second)])[1]


def test_what_yields_stays_where_it_was_and_only_informs() -> None:
    for found in [yielded(FIRST, SECOND)]:
        assert (found.status, found.severity) == ("informative", "info")
        assert (found.edit, found.advice) == (SECOND.edit, SECOND.advice)
        assert found.effect_on_results == SECOND.effect_on_results
        assert (found.file, found.line, found.op_id) == ("train.py", 12, "map_0")
        assert (found.title, found.part) == ("It waits for GPU:1", "compile")
        assert found.evidence == {"idle": 3.0}
        assert found.needs_first == "device-idle"


def test_it_fails_again_where_a_trial_refuted_what_it_yielded_to() -> None:
    waits = yielded(FIRST, SECOND)
    refuted = FIRST.model_copy(update={"trial": Trial(state="refuted", reason=None)})
    confirmed = FIRST.model_copy(update={"trial": Trial(state="confirmed", reason=None)})
    assert reinstated([refuted, waits], METAS)[1] == SECOND
    assert reinstated([confirmed, waits], METAS)[1] == waits


def test_it_yields_to_nothing_that_has_not_failed() -> None:
    assert yielded(SMALL_KERNELS.finding("informative", "A few."), SECOND) == SECOND
    passed = LAUNCH_BOUND.finding("pass", "")
    assert yielded(FIRST, passed) == passed


def test_a_rule_that_breaks_says_so_in_its_place() -> None:
    def broken() -> list[Finding]:
        raise KeyError("delay")

    (finding,) = guarded(LAUNCH_BOUND, broken)
    assert (finding.status, finding.severity) == ("error", "info")
    assert finding.title == "Launch-bound device: the rule itself failed"
    assert finding.advice == (
        "This rule stopped with KeyError: 'delay'. The other findings stand; please report it with "
        "the session.json."
    )
