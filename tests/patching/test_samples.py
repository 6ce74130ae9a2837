"""The edits that are confirmed on samples and benchmark scripts, as patches of these scripts.

Their operations are read from the source here, as a recording would name them: each by the line on
which its name stands. The expectations next to the scripts name the confirmed edits.
"""

from __future__ import annotations

import ast
import difflib
from pathlib import Path

import pytest

import benchmarks
from pipediag.session.edits import (
    AUTOTUNE,
    IN_PROCESSES,
    Change,
    CompileCall,
    CompileFunction,
    ExtractStep,
    Insert,
    Move,
    PredictOnBatch,
    Replace,
    RewriteCall,
    SetModel,
    SetOptions,
    SetParameters,
)
from pipediag.session.pipeline import Operation
from tests.patching.scripts import SCRIPT, patch, patched
from tests.records import make_operation
from tests.samples.expectation import SAMPLES, all_expectations

AT_ONCE = {"cycle_length": 16, "num_parallel_calls": 16}
POOL = SetOptions({"threading.private_threadpool_size": 16})
TWO_COPIES = Replace("from_generator", "interleave", {"cycle_length": 2, "num_parallel_calls": 2})
STACKED = Replace("from_generator", "in_chunks", {"elements": 64})
TUNED = SetParameters("map", {"num_parallel_calls": AUTOTUNE})
CACHE = Insert("map", "cache", {"elements": 64})
BEHIND_GENERATOR = Insert("from_generator", "cache", {"elements": 64})
BEHIND = Move("shuffle", "map")
VECTOR = Move("map", "batch")
BIGGER = SetParameters("batch", {"batch_size": 128})
SEVERAL = SetModel({"steps_per_execution": 16})
WORKERS = Replace("source", "PyDataset", {"workers": 16, "max_queue_size": 32})
DEFAULTS = SetOptions({"optimization.apply_default_optimizations": True, "autotune.enabled": True})

CONFIRMED: dict[tuple[str, str], tuple[Change, ...]] = {
    ("blocking_numpy_function", "parallel-map"): (
        SetParameters("map", {"num_parallel_calls": 16}),
        POOL,
    ),
    ("blocking_numpy_function", "missing-cache"): (BEHIND, CACHE),
    ("csv_lines_each", "missing-cache"): (CACHE,),
    ("csv_lines_each", "per-element-map"): (VECTOR,),
    ("decoy_cached_already", "missing-cache"): (CACHE,),
    ("decoy_cached_already", "per-element-map"): (VECTOR,),
    ("decoy_small_batch_waits", "missing-cache"): (BEHIND, CACHE),
    ("decoy_small_batch_waits", "parallel-map"): (TUNED, POOL),
    ("disabled_defaults", "tf-data-defaults"): (DEFAULTS,),
    ("disabled_defaults", "missing-cache"): (BEHIND, CACHE),
    ("epochs_with_pauses", "host-overhead"): (SEVERAL,),
    ("epochs_with_pauses", "iterator-pauses"): (SetOptions({"autotune.enabled": False}),),
    ("eager_evaluation", "eager-evaluation"): (CompileCall(SCRIPT, 41, "model"),),
    ("eager_step", "eager-execution"): (CompileFunction(SCRIPT, 29, "Trainer.train_step"),),
    ("eager_step_in_loop", "eager-execution"): (ExtractStep(SCRIPT, 35, ("smoothing",)),),
    ("retracing_lengths", "retracing"): (
        CompileFunction(SCRIPT, 40, "train_step", reduce_retracing=True),
    ),
    ("eager_fit", "eager-execution"): (SetModel({"run_eagerly": False}),),
    ("predict_per_user", "small-predict"): (PredictOnBatch(SCRIPT, 25),),
    ("predict_in_callback", "small-predict"): (PredictOnBatch(SCRIPT, 26),),
    ("generator_waits", "missing-cache"): (BEHIND_GENERATOR,),
    ("generator_waits", "python-input"): (TWO_COPIES, POOL),
    ("generator_waits_and_parses", "missing-cache"): (BEHIND_GENERATOR,),
    ("generator_waits_and_parses", "python-input"): (TWO_COPIES, POOL),
    ("host_overhead", "host-overhead"): (SEVERAL,),
    ("jpeg_loop_single_call", "missing-cache"): (BEHIND, CACHE),
    ("jpeg_loop_single_call", "parallel-map"): (TUNED,),
    ("json_records", "missing-cache"): (BEHIND, CACHE),
    ("json_records", "python-each-row"): (VECTOR,),
    ("large_table_adam", "embedding-update"): (SetModel({"optimizer": "row_wise"}),),
    ("missing_cache", "missing-cache"): (CACHE,),
    ("missing_prefetch", "tf-data-defaults"): (SetOptions({"optimization.inject_prefetch": True}),),
    ("missing_prefetch", "parallel-map"): (TUNED,),
    ("negatives_drawn_each", "slow-python-call"): (
        RewriteCall("from_generator", SCRIPT, 23, "pairs"),
    ),
    ("negatives_drawn_each", "generator-elements"): (STACKED,),
    ("nested_map", "parallel-map"): (TUNED,),
    ("nested_map", "sequential-files"): (
        Replace("flat_map", "interleave", {"cycle_length": 2, "num_parallel_calls": AUTOTUNE}),
    ),
    ("per_element_map", "missing-cache"): (CACHE,),
    ("per_element_map", "per-element-map"): (VECTOR,),
    ("pydataset_store", "python-input"): (WORKERS,),
    ("python_map_lock", "python-each-row"): (
        VECTOR,
        Replace("map", IN_PROCESSES, {"processes": 2}),
    ),
    ("random_augmentation", "parallel-map"): (TUNED,),
    ("padded_texts", "padding"): (Insert("batch", "cut_padding"),),
    ("padded_to_max_length", "padding"): (Insert("padded_batch", "cut_padding"),),
    ("row_generator", "generator-elements"): (STACKED,),
    ("row_generator", "missing-cache"): (BEHIND_GENERATOR,),
    ("shards_in_flat_map", "serial-flat-map"): (
        Replace("flat_map", "parallel_flat_map", {**AT_ONCE}),
        POOL,
    ),
    ("shuffled_whole_data", "missing-cache"): (CACHE,),
    ("single_call_map", "missing-cache"): (BEHIND, CACHE),
    ("single_call_map", "parallel-map"): (TUNED,),
    ("slow_embedding_basic", "host-overhead"): (SEVERAL,),
    ("slow_embedding_basic", "small-batch"): (BIGGER,),
    ("small_batch", "host-overhead"): (SEVERAL,),
    ("text_layer_in_model", "host-overhead"): (SEVERAL,),
    ("small_batch", "small-batch"): (BIGGER,),
    ("string_lookup", "missing-cache"): (BEHIND, CACHE),
    ("string_lookup", "parallel-map"): (TUNED,),
    ("table_copied_on_lookup", "embedding-update"): (SetModel({"jit_compile": True}),),
    ("text_padded_batch", "missing-cache"): (BEHIND, CACHE),
    ("tfrecord_parse_each", "missing-cache"): (CACHE,),
    ("tfrecord_parse_each", "per-element-map"): (VECTOR,),
    ("waiting_generators", "python-input"): (Replace("flat_map", "interleave", AT_ONCE), POOL),
    ("waiting_map_pool", "parallel-map"): (SetParameters("map", {"num_parallel_calls": 16}), POOL),
}
"""By script and rule, the changes that the rule's edit is made of there."""

BY_HAND = {("generator_waits", "python-input"), ("generator_waits_and_parses", "python-input")}
"""Changes that only the author of the script can write."""
GOAL = 0.8
SCRIPTS = Path(benchmarks.__file__).parent / "scripts"

EXPECTED = {
    expected.name: expected
    for folder in (SAMPLES, SCRIPTS)
    for expected in all_expectations(folder)
}


def operations(text: str) -> list[Operation]:
    """Every call that makes a dataset or an operation of one, in the order of the data.

    Those in functions are of datasets only where a flat_map is there to call the function.
    """
    nodes = list(ast.walk(ast.parse(text)))
    functions = [node for node in nodes if isinstance(node, ast.FunctionDef)]
    inner = {line for f in functions for line in range(f.lineno, (f.end_lineno or 0) + 1)}
    called = [
        ((node.end_lineno or 0, node.end_col_offset or 0), node.func.end_lineno, node.func.attr)
        for node in nodes
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    ]
    outer = "flat_map" if any(kind == "flat_map" for _, _, kind in called) else None
    return [
        make_operation(
            kind, kind, file=SCRIPT, line=line, inside_function_of=outer if line in inner else None
        )
        for _, line, kind in sorted(called)
        if kind in DATASETS and (outer is not None or line not in inner)
    ]


DATASETS = frozenset(
    "batch cache filter flat_map from_generator from_tensor_slices interleave map padded_batch "
    "prefetch range repeat shuffle TFRecordDataset unbatch with_options".split()
)


@pytest.mark.parametrize(("script", "rule"), CONFIRMED, ids=lambda each: each)
def test_a_confirmed_edit_is_a_patch_or_code_to_paste(script: str, rule: str) -> None:
    text = EXPECTED[script].script.read_text(encoding="utf-8")
    keras = {"source": "Stored", "source_file": SCRIPT, "optimizer": "Adam"}
    lengths = {"ids": 200} if script == "padded_to_max_length" else {}
    keras = {**keras, "fixed_lengths": lengths}
    found, after = patch(text, operations(text), *CONFIRMED[script, rule], keras=keras)
    if (script, rule) in BY_HAND:
        assert found.diff is None
        assert found.left_out[0].reason
        return
    assert found.left_out == []
    compile(after, script, "exec")
    assert after != text


def test_these_are_the_edits_that_are_expected_to_be_confirmed() -> None:
    expected = {(name, rule) for name, one in EXPECTED.items() for rule in one.trials.confirmed}
    assert set(CONFIRMED) == expected


def test_most_of_them_are_patches() -> None:
    assert 1 - len(BY_HAND) / len(CONFIRMED) >= GOAL


def changed_lines(script: str, *changes: Change) -> list[str]:
    text = EXPECTED[script].script.read_text(encoding="utf-8")
    after = patched(text, operations(text), *changes)
    compared = difflib.ndiff(text.split("\n"), after.split("\n"))
    return [line for line in compared if line.startswith(("- ", "+ "))]


def test_generators_that_wait_are_read_at_once_by_a_pool_that_is_large_enough() -> None:
    assert changed_lines(
        "waiting_generators", *CONFIRMED["waiting_generators", "python-input"]
    ) == [
        "- dataset = tf.data.Dataset.range(8).flat_map(rows_of)"
        ".batch(16).repeat()  # pipediag: outer",
        "+ dataset = tf.data.Dataset.range(8)"
        ".interleave(rows_of, cycle_length=16, num_parallel_calls=16)"
        ".batch(16).repeat()  # pipediag: outer",
        "+ options = tf.data.Options()",
        "+ options.threading.private_threadpool_size = 16",
        "+ dataset = dataset.with_options(options)",
    ]


def test_defaults_are_switched_on_beside_a_cache_behind_the_map() -> None:
    assert changed_lines("disabled_defaults", BEHIND, CACHE, DEFAULTS) == [
        "+ dataset = dataset.map(spectrum)  # pipediag: culprit",
        "+ dataset = dataset.cache()",
        "- dataset = dataset.map(spectrum)  # pipediag: culprit",
        "- options.experimental_optimization.apply_default_optimizations = False",
        "+ options.experimental_optimization.apply_default_optimizations = True",
        "- options.autotune.enabled = False",
        "+ options.autotune.enabled = True",
    ]
