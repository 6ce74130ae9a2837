"""Patches of the edits that a person has written into the samples do what the person did."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest

from pipediag.session.edits import (
    AUTOTUNE,
    Change,
    Insert,
    Move,
    Replace,
    SetOptions,
    SetParameters,
)
from pipediag.session.pipeline import Operation
from tests.patching.effect import effect_of
from tests.patching.scripts import op, patched
from tests.samples.expectation import SAMPLES

EDITS = Path(__file__).with_name("applied.toml")
KNOWN: dict[str, Any] = tomllib.loads(EDITS.read_text(encoding="utf-8"))
POOL = SetOptions({"threading.private_threadpool_size": 16})
TUNED = SetParameters("map", {"num_parallel_calls": AUTOTUNE})
WAITING = SetParameters("map", {"num_parallel_calls": 16})
DEFAULTS = SetOptions({"optimization.apply_default_optimizations": True, "autotune.enabled": True})

Written = tuple[tuple[str, str], ...]
"""Kind, and what stands on its line in the sample, in the order of the data."""

FOUR: Written = (
    ("from_tensor_slices", "Dataset.from_tensor_slices("),
    ("shuffle", "= dataset.shuffle("),
    ("map", "= dataset.map("),
    ("batch", "= dataset.batch("),
)
THREE = (FOUR[0], *FOUR[2:])
RANGE = (("range", "Dataset.range("), *FOUR[1:])
SHUFFLED = (FOUR[0], FOUR[2], FOUR[1], ("batch", ".batch("), ("prefetch", ".batch("))
MANY_FILES = (("TFRecordDataset", "data.TFRecordDataset("), FOUR[1], FOUR[3], FOUR[2])
DISABLED = (*FOUR, ("with_options", ".with_options("))
GENERATORS = tuple((kind, "# pipediag: outer") for kind in ("range", "flat_map", "batch", "repeat"))

EDITED: dict[str, tuple[Written, tuple[Change, ...]]] = {
    "missing_cache": (THREE, (Insert("map", "cache", {"elements": 640}),)),
    "shuffled_whole_data": (
        SHUFFLED,
        (Insert("map", "cache", {"elements": 960}),),
    ),
    "random_augmentation": (FOUR, (TUNED,)),
    "string_lookup": (FOUR, (TUNED,)),
    "single_call_map": (FOUR, (TUNED,)),
    "blocking_numpy_function": (RANGE, (WAITING, POOL)),
    "waiting_map_pool": (RANGE, (WAITING, POOL)),
    "waiting_generators": (
        GENERATORS,
        (Replace("flat_map", "interleave", {"cycle_length": 8, "num_parallel_calls": 8}), POOL),
    ),
    "many_files": (MANY_FILES, (SetParameters("TFRecordDataset", {"num_parallel_reads": -1}),)),
}
"""As the rules make them; the others are told apart below."""


def sample(name: str) -> str:
    return (SAMPLES / f"{name}.py").read_text(encoding="utf-8")


def edited(name: str) -> str:
    text = sample(name)
    for change in KNOWN[name]["edits"]:
        assert text.count(change["old"]) == 1
        text = text.replace(change["old"], change["new"])
    return text


def patched_sample(name: str, written: Written, changes: tuple[Change, ...]) -> str:
    text = sample(name)
    ops: list[Operation] = [op(text, kind, needle) for kind, needle in written]
    return patched(text, ops, *changes)


@pytest.mark.parametrize("name", EDITED)
def test_a_patch_does_what_a_person_did(name: str) -> None:
    after = effect_of(patched_sample(name, *EDITED[name]))
    person = effect_of(edited(name))
    assert after == person
    assert after != effect_of(sample(name))


def test_defaults_that_a_person_stops_switching_off_are_switched_on() -> None:
    after = effect_of(patched_sample("disabled_defaults", DISABLED, (DEFAULTS,)))
    person = effect_of(edited("disabled_defaults"))
    assert after.chains == person.chains
    assert after.option("apply_default_optimizations") == "True"
    assert after.option("autotune.enabled") == "True"
    assert person.option("apply_default_optimizations") is None


def test_a_nested_map_is_made_parallel_where_the_trial_did_so() -> None:
    """A person moves it out of the function, which is another edit than the one that was tried."""
    text = sample("nested_map")
    ops = [
        op(text, "flat_map", ".flat_map("),
        op(text, "map", ".map(spectrum)", inside_function_of="flat_map"),
        op(text, "shuffle", ".shuffle("),
        op(text, "batch", ".batch("),
    ]
    before, after = effect_of(text), effect_of(patched(text, ops, TUNED))
    *first, last = after.chains["examples_in()"]
    assert last == ("map", ("spectrum", "num_parallel_calls=tf.data.AUTOTUNE"))
    assert tuple(first) == before.chains["examples_in()"][:-1]
    assert after.chains["dataset"] == before.chains["dataset"]


def test_every_edit_that_a_person_wrote_is_compared() -> None:
    apart = {"waiting_generators", "disabled_defaults", "nested_map"}
    assert set(EDITED) | apart == set(KNOWN)


def test_a_cache_goes_before_the_shuffle_that_stood_above_the_map() -> None:
    changes = (Move("shuffle", "map"), Insert("map", "cache", {"elements": 12_800}))
    after = effect_of(patched_sample("string_lookup", FOUR, changes))
    assert [name for name, _ in after.chains["dataset"]][-4:] == [
        "map",
        "cache",
        "shuffle",
        "batch",
    ]
