"""The edits that are confirmed on samples and benchmark scripts, as patches of these scripts.

Their operations are read from the source here, as a recording would name them: each by the line on
which its name stands. The expectations next to the scripts name the confirmed edits.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import benchmarks
from pipediag.session.edits import (
    AUTOTUNE,
    IN_BATCHES,
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
from tests.patching.scripts import SCRIPT, patch
from tests.records import make_function, make_operation
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
SIXTEEN = SetParameters("map", {"num_parallel_calls": 16})
WAITING = "generator_waits generator_waits_and_parses"
WORKERS = Replace("source", "PyDataset", {"workers": 16, "max_queue_size": 32})
DEFAULTS = SetOptions({"optimization.apply_default_optimizations": True, "autotune.enabled": True})


def each(rule: str, scripts: str, *changes: Change) -> dict[tuple[str, str], tuple[Change, ...]]:
    return dict.fromkeys(((script, rule) for script in scripts.split()), changes)


CONFIRMED = {
    **each(
        "missing-cache",
        "csv_lines_each decoy_cached_already missing_cache per_element_map python_map_lock "
        "shuffled_whole_data tfrecord_parse_each",
        CACHE,
    ),
    **each("missing-cache", "lines_filtered", Insert("filter", "cache", {"elements": 64})),
    **each(
        "per-element-map",
        "lines_filtered",
        Replace("map", IN_BATCHES, {"elements": 256, "first": True, "last": False}),
        Replace("filter", IN_BATCHES, {"elements": 256, "first": False, "last": True}),
    ),
    **each(
        "missing-cache",
        "blocking_numpy_function decoy_small_batch_waits disabled_defaults jpeg_loop_single_call "
        "json_records single_call_map string_lookup text_padded_batch",
        BEHIND,
        CACHE,
    ),
    **each("missing-cache", f"{WAITING} row_generator", BEHIND_GENERATOR),
    **each(
        "per-element-map",
        "csv_lines_each decoy_cached_already per_element_map tfrecord_parse_each",
        VECTOR,
    ),
    **each(
        "parallel-map",
        "jpeg_loop_single_call missing_prefetch nested_map random_augmentation single_call_map "
        "string_lookup",
        TUNED,
    ),
    **each("parallel-map", "blocking_numpy_function waiting_map_pool", SIXTEEN, POOL),
    **each("parallel-map", "decoy_small_batch_waits", TUNED, POOL),
    **each(
        "host-overhead",
        "epochs_with_pauses host_overhead slow_embedding_basic small_batch text_layer_in_model",
        SetModel({"steps_per_execution": 16}),
    ),
    **each("small-batch", "slow_embedding_basic small_batch", BIGGER),
    **each("generator-elements", "negatives_drawn_each row_generator", STACKED),
    **each("python-input", WAITING, TWO_COPIES, POOL),
    **each("python-input", "waiting_generators", Replace("flat_map", "interleave", AT_ONCE), POOL),
    **each("python-input", "pydataset_store", WORKERS),
    **each("python-each-row", "json_records", VECTOR),
    **each(
        "python-each-row", "python_map_lock", VECTOR, Replace("map", IN_PROCESSES, {"processes": 2})
    ),
    **each("tf-data-defaults", "disabled_defaults", DEFAULTS),
    **each(
        "tf-data-defaults", "missing_prefetch", SetOptions({"optimization.inject_prefetch": True})
    ),
    **each("iterator-pauses", "epochs_with_pauses", SetOptions({"autotune.enabled": False})),
    **each("eager-evaluation", "eager_evaluation", CompileCall(SCRIPT, 41, "model")),
    **each("eager-evaluation", "eager_generation", CompileCall(SCRIPT, 30, "self")),
    **each("eager-evaluation", "eager_metric", CompileCall(SCRIPT, 49, "auc", "update_state")),
    **each("eager-execution", "eager_step", CompileFunction(SCRIPT, 29, "Trainer.train_step")),
    **each("eager-execution", "eager_step_in_loop", ExtractStep(SCRIPT, 35, ("smoothing",))),
    **each("eager-execution", "eager_fit", SetModel({"run_eagerly": False})),
    **each("retracing", "retracing_lengths", CompileFunction(SCRIPT, 40, "train_step", True)),
    **each("small-predict", "predict_per_user", PredictOnBatch(SCRIPT, 25)),
    **each("small-predict", "predict_in_callback", PredictOnBatch(SCRIPT, 26)),
    **each(
        "predict-in-step",
        "negatives_by_predict",
        PredictOnBatch(SCRIPT, 32),
        PredictOnBatch(SCRIPT, 33),
    ),
    **each("embedding-update", "large_table_adam", SetModel({"optimizer": "row_wise"})),
    **each("embedding-update", "table_copied_on_lookup", SetModel({"jit_compile": True})),
    **each(
        "slow-python-call",
        "negatives_drawn_each",
        RewriteCall("from_generator", SCRIPT, 23, "pairs"),
    ),
    **each(
        "slow-python-call", "negatives_drawn_in_loop", RewriteCall(None, SCRIPT, 20, "negatives")
    ),
    **each(
        "sequential-files",
        "nested_map",
        Replace("flat_map", "interleave", {"cycle_length": 2, "num_parallel_calls": AUTOTUNE}),
    ),
    **each("padding", "padded_texts", Insert("batch", "cut_padding")),
    **each("padding", "padded_to_max_length", Insert("padded_batch", "cut_padding")),
    **each(
        "serial-flat-map",
        "shards_in_flat_map",
        Replace("flat_map", "parallel_flat_map", {**AT_ONCE}),
        POOL,
    ),
}
"""By script and rule, the changes that the rule's edit is made of there."""

BY_HAND = each("python-input", WAITING).keys()
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
            kind,
            kind,
            file=SCRIPT,
            line=line,
            inside_function_of=outer if line in inner else None,
            function=make_function() if kind in ("map", "filter") else None,
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
    changes = CONFIRMED[script, rule]
    set_ = [one.options for one in changes if isinstance(one, SetOptions)]
    options = dict.fromkeys(set_[0], False) if rule == "tf-data-defaults" else {}
    found, after = patch(text, operations(text), *changes, keras=keras, options=options)
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
