from __future__ import annotations

import pytest

from pipediag.rules.device.iterator_advice import advice_for


@pytest.mark.parametrize(
    ("iterator", "words"),
    [
        ("Root::Prefetch::MapV2", "Give the map"),
        ("Root::Prefetch::ParallelMapV2", "in parallel already"),
        ("Iterator::Root::MapAndBatch", "more parallel calls"),
        ("Root::Prefetch::BatchV2::TFRecord", "interleave"),
        ("Root::FlatMap[0]::Generator", "whole batches"),
        ("Root::FlatMap", "Replace the flat_map"),
        ("Root::Shuffle", "Shuffle before"),
        ("Root::BatchV2", "num_parallel_calls"),
        ("Root::Custom", "common remedies"),
        (None, "common remedies"),
    ],
)
def test_the_last_part_of_the_name_decides(iterator: str | None, words: str) -> None:
    assert words in advice_for(iterator)
