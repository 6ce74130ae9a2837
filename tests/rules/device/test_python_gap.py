from __future__ import annotations

from pipediag.rules.device import python_gap
from pipediag.rules.registry import run_rules
from pipediag.session.edits import SetModel
from pipediag.session.host import HotLine
from pipediag.session.loops import Callback
from pipediag.session.steps import Perturbation
from tests.factories import make_host, make_keras, make_loop
from tests.rules.devices import cpu, gap, gpu, on_devices, session_on
from tests.rules.sessions import only

STEPS = [gap("python", 5.0, step=step, doing="$callbacks.py:12 log") for step in range(8)]
LOGGING = gpu({"python": 40.0}, gaps=STEPS)


def test_python_in_every_step() -> None:
    finding = on_devices(python_gap, LOGGING)
    assert finding.status == "fail"
    assert "callbacks.py:12 log" in finding.advice
    assert "steps_per_execution" in finding.advice
    assert finding.evidence["there_ms"] == 40.0
    # 100 ms over 60 ms.
    assert finding.speedup_at_most == 1.667


def test_a_single_pause_only_informs() -> None:
    pause = gap("python", 25.0, step=7, doing="$saving.py:80 save")
    device = gpu({"python": 40.0}, gaps=[*STEPS[:3], pause])
    finding = on_devices(python_gap, device)
    assert finding.status == "informative"
    assert finding.title == "One long pause in Python"
    assert "25 ms in step 7 (`saving.py:80 save`)" in finding.advice


def test_a_cpu_that_stands_for_a_device_waits_too() -> None:
    device = cpu({"python": 40.0}).model_copy(update={"gaps": STEPS})
    assert on_devices(python_gap, device).status == "fail"


def test_near_misses_pass() -> None:
    assert on_devices(python_gap, gpu({"python": 14.9, "launch": 50.0})).status == "pass"


def test_while_input_is_the_bottleneck_it_only_informs() -> None:
    device = LOGGING.model_copy(update={"causes_ms": {"python": 40.0, "input": 30.0}})
    assert "input first" in on_devices(python_gap, device).advice


def test_a_profile_without_devices_is_not_its_business() -> None:
    assert on_devices(python_gap).status == "not-applicable"


def test_what_the_profiler_slowed_much_is_in_doubt() -> None:
    slowed = Perturbation(baseline_step_ms=10.0, profiled_step_ms=15.0, ratio=1.5)
    finding = only(python_gap, session_on(LOGGING, perturbation=slowed))
    assert (finding.status, finding.edit is not None) == ("informative", True)
    assert "1.5 times as long" in finding.advice
    passes = only(python_gap, session_on(gpu(), perturbation=slowed))
    assert passes.status == "pass"


def test_a_callback_that_was_measured_comes_first() -> None:
    hook = Callback(name="Log", file="train.py", line=3, batch_hooks=["on_train_batch_end"])
    hot = HotLine(
        file="train.py", line=4, function="Log.on_train_batch_end", percent=40.0, thread="main"
    )
    session = session_on(
        LOGGING,
        loops=[make_loop(keras=make_keras(callbacks=[hook]))],
        host=make_host(hot_python=[hot]),
    )
    finding = next(found for found in run_rules(session) if found.rule == "python-gap")
    assert (finding.status, finding.needs_first) == ("informative", "batch-callback")


def test_tries_several_steps_a_call() -> None:
    edit = only(python_gap, session_on(LOGGING)).edit
    assert edit is not None
    assert (edit.id, edit.changes) == ("python-gap", (SetModel({"steps_per_execution": 16}),))
