"""The verdict's sentences at the limits of what they say."""

from __future__ import annotations

import pytest

from pipediag.measures.verdict.culprits import Culprit, ShuffleFill
from pipediag.measures.verdict.sentences import (
    elsewhere,
    epoch_ends_sentence,
    first_batch_sentence,
    input_sentence,
    missing_sentence,
    other_sentence,
    place,
)
from tests.factories import make_loop_time
from tests.records import make_breakdown


def test_a_place_is_the_name_of_its_file_and_the_line_if_there_is_one() -> None:
    assert place("/home/me/train.py", 12) == " at train.py:12"
    assert place("/home/me/train.py", None) == " in train.py"
    assert place(None, 12) == ""


def test_overhead_is_told_by_its_classes_the_largest_first_and_none_under_a_percent() -> None:
    shares = make_breakdown(
        dispatch=20.0, python=30.0, compile=1.0, device_wait=0.9, device_compute=40.0
    )
    assert other_sentence("overhead", 51.9, shares, None) == (
        "Overhead-bound: 52 % of each step is overhead (Python 30 %, launching operations 20 %, "
        "compiling or retracing 1 %)."
    )


def test_transfer_and_waiting_have_words() -> None:
    shares = make_breakdown(device_copy=30.0, collective=20.0, device_wait=5.0)
    assert "transfer (copies to and from the device 30 %, collectives 20 %)" in other_sentence(
        "transfer", 50.0, shares, None
    )
    assert "(waiting for a result 5 %)" in other_sentence("overhead", 5.0, shares, None)


def test_the_most_that_free_input_gains_has_one_form_whatever_it_is() -> None:
    shares = make_breakdown(device_compute=90.0)
    for most, words in ((1.004, "1x"), (1.5, "1.5x")):
        said = other_sentence("compute", 90.0, shares, most)
        assert said.endswith(f"; free input would make training at most {words} as fast.")


def test_without_a_reason_the_step_was_not_measured() -> None:
    assert missing_sentence("It ended.") == "No verdict: It ended."
    assert missing_sentence(None) == "No verdict: the step was not measured."


@pytest.mark.parametrize(
    ("ends", "basis", "words"),
    [
        (1, "projected", "1 end of an epoch was seen; their waits are counted for every epoch "),
        (3, "measured", "3 ends of epochs were seen; their waits are as seen."),
    ],
)
def test_what_waits_rest_on_is_said(ends: int, basis: str, words: str) -> None:
    said = epoch_ends_sentence(make_loop_time(epoch_ends_seen=ends, basis=basis))
    assert said.startswith(words)
    assert said.endswith("planned." if basis == "projected" else "seen.")


def test_parts_of_a_loop_under_a_percent_are_not_named() -> None:
    time = make_loop_time(
        total_s=100.0, first_batches_s=0.9, between_epochs_s=1.0, unexplained_s=30.0
    )
    assert elsewhere(time) == (
        "30 % is in slower steps and work that no measured step had, 1 % is between epochs "
        "(validation, callbacks and other work)"
    )


def test_waits_for_first_batches_are_told_with_who_is_behind_them() -> None:
    time = make_loop_time(total_s=20.0, first_batches_s=16.0, first_batch_ms=None)
    shuffle, maker = Culprit("`shuffle`", "a.py", 4), Culprit("`map`", "a.py", 3)
    start = (
        "Highly input-bound: 80 % of the loop's time (16 s of 20 s) is spent waiting for the first "
        "batch of each epoch"
    )
    end = ". Without these waits the loop would be 5x as fast."
    assert first_batch_sentence(time, None) == start + end
    assert first_batch_sentence(time, maker) == f"{start}; `map` at a.py:3 costs most{end}"
    fill = ShuffleFill(shuffle, maker)
    assert first_batch_sentence(time, fill) == (
        f"{start}; `shuffle` at a.py:4 fills meanwhile with what `map` at a.py:3 makes{end}"
    )


def test_a_loop_that_did_nothing_but_wait_has_no_gain_that_could_be_told() -> None:
    all_waits = make_loop_time(total_s=20.0, first_batches_s=19.99, first_batch_ms=1600.0)
    assert first_batch_sentence(all_waits, None).endswith("of each epoch, 1.6 s each time.")


def test_an_input_bound_step_has_one_bound() -> None:
    share = make_breakdown(input_wait=70.0)["input_wait"]
    said = input_sentence(share, None, 3.32)
    assert said.endswith("spent on input. Free input would make training at most 3.32x as fast.")
    assert input_sentence(share, None, None).endswith("spent on input.")
