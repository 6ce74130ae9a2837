from __future__ import annotations

from pipediag.gate import formats
from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate
from pipediag.gate.formats.text import render
from pipediag.gate.result import Check, GateResult
from tests.factories import make_compute_bound_session, make_session

CONFIG = GateConfig(max_input_wait_percent=20, max_overhead_percent=30)


def test_one_session() -> None:
    assert render([evaluate(make_session(), CONFIG)]) == (
        "train.py: failed\n"
        "  FAIL          max-input-wait-percent [train.py:12]: Input wait: 70.0 % of the step "
        "(95 % interval 69.0 to 71.0 %), over the limit of 20 %.\n"
        "  FAIL          parallel-map [train.py:12]: A stateful map runs one element at a "
        "time. Write the function in TensorFlow operations.\n"
        "  PASS          max-overhead-percent [train.py:12]: Overhead (dispatch, Python, "
        "compilation, waiting for the device): 9.0 % of the step (95 % interval 7.0 to 13.0 %), "
        "within the limit of 30 %.\n"
        "\n"
        "Gate: failed (exit status 1).\n"
    )


def test_all_values_of_several_sessions() -> None:
    text = render(
        [
            evaluate(make_compute_bound_session(), CONFIG, label="first"),
            evaluate(make_session(), CONFIG, label="second"),
        ]
    )
    assert "first: passed" in text
    assert "second: failed" in text
    assert "Input wait: 1.0 %" in text
    assert "Input wait: 70.0 %" in text
    assert text.endswith("Gate: failed (exit status 1): 1 of 2 sessions.\n")


def test_a_script_that_failed() -> None:
    text = render([GateResult(label="train.py", checks=(), script_failure="It was killed.")])
    assert text == "train.py: not judged\n  It was killed.\n\nGate: not judged (exit status 3).\n"


def test_an_allowed_inconclusive_gate_still_says_so() -> None:
    config = GateConfig(max_input_wait_percent=70, allow_inconclusive=True)
    text = render([evaluate(make_session(findings=[]), config)])
    assert "train.py: passed, with inconclusive checks allowed" in text
    assert "INCONCLUSIVE  max-input-wait-percent" in text


def test_a_check_without_a_place_has_no_brackets() -> None:
    check = Check("missing-cache", "warn", "warn", "Read again each epoch.")
    said = render([GateResult(label="train.py", checks=(check,))])
    assert "  WARN          missing-cache: Read again each epoch.\n" in said


def test_a_gate_that_failed_is_not_said_to_be_allowed_what_it_could_not_decide() -> None:
    config = GateConfig(max_input_wait_percent=20, max_overhead_percent=9)
    said = render([evaluate(make_session(findings=[]), config)])
    assert said.startswith("train.py: failed\n")


def test_sessions_that_share_the_worst_status_are_counted() -> None:
    sessions = [make_session(), make_session(), make_compute_bound_session()]
    said = render([evaluate(session, CONFIG) for session in sessions])
    assert said.endswith("Gate: failed (exit status 1): 2 of 3 sessions.\n")


def test_each_form_is_rendered_under_its_name() -> None:
    results = [evaluate(make_session(), CONFIG)]
    assert {"github", "markdown", "text"} <= set(formats.NAMES)
    assert formats.render("text", results) == render(results)
