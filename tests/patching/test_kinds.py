"""Each kind of change on a script of a few lines: before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest

from pipediag.patching.making import make_patch
from pipediag.patching.source import NotPatchableError
from pipediag.patching.workspace import current_file
from pipediag.session.edits import (
    AUTOTUNE,
    IN_BATCHES,
    Change,
    CompileCall,
    CompileFunction,
    Edit,
    ExtractStep,
    Insert,
    Move,
    PredictOnBatch,
    Remove,
    Replace,
    RewriteCall,
    SetModel,
    SetOptions,
    SetParameters,
)
from pipediag.session.findings import Patch
from pipediag.session.pipeline import Operation
from pipediag.session.recording import RowOperation
from tests.factories import make_loop
from tests.patching.scripts import SCRIPT, line_of, op, patch, patched, refused, session_of
from tests.records import make_function

HEAD = "import tensorflow as tf\n\n"
REBOUND = (
    HEAD
    + """ds = tf.data.Dataset.range(9)
ds = ds.shuffle(9)  # all of them
ds = ds.map(f)  # costs much
ds = ds.batch(3)
model.compile("adam", loss="mse")
model.fit(ds)
"""
)
CHAINED = (
    HEAD
    + """ds = (
    tf.data.Dataset.range(9)
    .shuffle(9)  # all of them
    .map(f)  # costs much
    .batch(3)
)
model.compile(
    optimizer=keras.optimizers.Adam(1e-3),
    loss="mse",
)
model.fit(ds)
"""
)
COMMENTED = (
    HEAD
    + """ds = (
    tf.data.Dataset.range(9)  # e.g. 9 rows
    # of numbers
    .map(f)
    .shuffle(9)
    .batch(3)
)
model.fit(ds)
"""
)
ONE_LINE = (
    HEAD
    + """ds = tf.data.Dataset.range(9).shuffle(9).map(f).batch(3)
for batch in ds:
    step(batch)
"""
)


def ops(text: str) -> list[Operation]:
    kinds = ("range", "shuffle", "map", "batch")
    return [op(text, kind, f"{kind}(" if kind != "range" else "Dataset.range(") for kind in kinds]


PARALLEL = SetParameters("map", {"num_parallel_calls": AUTOTUNE})
TUNED = "num_parallel_calls=tf.data.AUTOTUNE"
CACHE = Insert("map", "cache", {"elements": 9})
BEHIND = Move("shuffle", "map")
SHUFFLE, MAP = "ds = ds.shuffle(9)  # all of them\n", "ds = ds.map(f)  # costs much\n"


def with_option(written: str) -> str:
    return (
        f"ds = ds.batch(3)\noptions = tf.data.Options()\noptions.{written}\n"
        "ds = ds.with_options(options)\n"
    )


TABLE: dict[str, tuple[str, tuple[Change, ...], str, str]] = {
    "an argument": (REBOUND, (PARALLEL,), "ds.map(f)", f"ds.map(f, {TUNED})"),
    "an argument by position": (
        REBOUND,
        (SetParameters("shuffle", {"buffer_size": 5}),),
        "shuffle(9)",
        "shuffle(5)",
    ),
    "a batch size": (
        REBOUND,
        (SetParameters("batch", {"batch_size": 12}),),
        "batch(3)",
        "batch(12)",
    ),
    "a cache on a line of its own": (REBOUND, (CACHE,), MAP, f"{MAP}ds = ds.cache()\n"),
    "a cache in a chain of lines": (
        CHAINED,
        (CACHE,),
        ".map(f)  # costs much\n",
        ".map(f)  # costs much\n    .cache()\n",
    ),
    "a cache in one line": (ONE_LINE, (CACHE,), ".map(f)", ".map(f).cache()"),
    "a call moved up": (
        ONE_LINE,
        (Move("batch", "range"),),
        ".shuffle(9).map(f).batch(3)",
        ".batch(3).shuffle(9).map(f)",
    ),
    "a shuffle behind a new cache": (
        ONE_LINE,
        (BEHIND, CACHE),
        ".shuffle(9).map(f)",
        ".map(f).cache().shuffle(9)",
    ),
    "a shuffle behind a new cache, line by line": (
        REBOUND,
        (CACHE, BEHIND),
        SHUFFLE + MAP,
        f"{MAP}ds = ds.cache()\n{SHUFFLE}",
    ),
    "a map of an annotated name": (
        REBOUND.replace("ds = ds.map", "ds: tf.data.Dataset = ds.map"),
        (Move("map", "batch"),),
        "ds: tf.data.Dataset = ds.map(f)  # costs much\nds = ds.batch(3)\n",
        "ds = ds.batch(3)\nds: tf.data.Dataset = ds.map(f)  # costs much\n",
    ),
    "a map behind comments": (
        COMMENTED,
        (Move("map", "batch"),),
        "  # e.g. 9 rows\n    # of numbers\n    .map(f)\n    .shuffle(9)\n    .batch(3)\n",
        "  # e.g. 9 rows\n    # of numbers\n    .shuffle(9)\n    .batch(3)\n    .map(f)\n",
    ),
    "options behind the last line": (
        REBOUND,
        (SetOptions({"threading.private_threadpool_size": 16}),),
        "ds = ds.batch(3)\n",
        with_option("threading.private_threadpool_size = 16"),
    ),
    "an option that is still experimental": (
        REBOUND,
        (SetOptions({"optimization.inject_prefetch": True}),),
        "ds = ds.batch(3)\n",
        with_option("experimental_optimization.inject_prefetch = True"),
    ),
    "a setting of the model": (
        REBOUND,
        (SetModel({"steps_per_execution": 16}),),
        'loss="mse")',
        'loss="mse", steps_per_execution=16)',
    ),
    "a setting on a line of its own": (
        CHAINED,
        (SetModel({"jit_compile": True}),),
        '    loss="mse",\n',
        '    loss="mse",\n    jit_compile=True,\n',
    ),
}


@pytest.mark.parametrize(("text", "changes", "old", "new"), TABLE.values(), ids=TABLE)
def test_a_change_is_written(text: str, changes: tuple[Change, ...], old: str, new: str) -> None:
    assert text.count(old) == 1
    assert patched(text, ops(text), *changes) == text.replace(old, new)


AHEAD = Insert("batch", "prefetch_to_device", {"device": "/gpu:0"})
APPLIED = ".apply(tf.data.experimental.prefetch_to_device('/gpu:0'))"
OWN_LOOP = ONE_LINE.replace("for batch in ds:\n    step(batch)\n", "")
MADE = OWN_LOOP.replace("ds = ", "def made():\n    ds = ").rstrip() + "\n    return ds, 9\n"
IN_DS, IN_MADE = (("in ds:", f"in ds{APPLIED}:"), ("in made():", f"in made(){APPLIED}:"))


def copied_ahead(text: str, **seen: Any) -> tuple[Patch, str]:
    """The patch of a script, for the loop that is marked in it."""

    def read(path: str) -> bytes:
        if path != SCRIPT:
            raise NotPatchableError("There is one file.")
        return text.encode()

    session = session_of(text, *ops(text))
    if "for " in text:
        own = {"kind": "eager", "keras": None, **seen}
        session = session.but(
            loops=[make_loop(file=SCRIPT, line=line_of(text, "batch in "), **own)]
        )
    edit = Edit("edit", "an edit", (AHEAD, CACHE))
    made, contents = make_patch(session, [edit], read)
    return made, contents.get(SCRIPT, b"").decode()


@pytest.mark.parametrize(
    ("text", "reading", "written"),
    [
        (REBOUND, "model.fit(ds)", f"model.fit(ds{APPLIED})"),
        (
            f"{OWN_LOOP}for n, batch in enumerate(ds.take(9)):\n    step(batch)\n",
            "enumerate(ds.take(9))",
            f"enumerate(ds.take(9){APPLIED})",
        ),
        (
            f"{OWN_LOOP}def train(x):\n    for batch in x:\n        step(batch)\n\n\ntrain(ds)\n",
            "in x:",
            f"in x{APPLIED}:",
        ),
        (
            f"{OWN_LOOP}def train():\n    for batch in ds:\n        step(batch)\n\n\ntrain()\n",
            "in ds:",
            f"in ds{APPLIED}:",
        ),
        (f"{MADE}\n\nds, info = made()\nfor batch in ds:\n    step(batch)\n", *IN_DS),
        (f"{MADE}\n\nfor batch in made():\n    step(batch)\n".replace(", 9", ""), *IN_MADE),
        (
            f"{OWN_LOOP}class Trainer:\n    def __init__(self, data):\n        self.data = data\n\n"
            "    def train(self):\n        for batch in self.data:\n            step(batch)\n\n\n"
            "Trainer(ds).train()\n",
            "in self.data:",
            f"in self.data{APPLIED}:",
        ),
    ],
)
def test_a_copy_to_the_device_is_the_last_that_a_loop_reads_through(
    text: str, reading: str, written: str
) -> None:
    made, after = copied_ahead(text)
    assert made.left_out == []
    assert after == patched(text, ops(text), CACHE).replace(reading, written)


def test_a_copy_to_the_device_is_written_beside_validation_and_behind_a_helper() -> None:
    text = f"{HEAD}ds = keras.utils.image_dataset_from_directory(path)\nmodel.fit(ds, valid)\n"
    made = {"helper": "keras.utils.image_dataset_from_directory", "made_by_framework": True}
    session = session_of(text, op(text, "prefetch", "from_directory(", id="batch", **made))
    validation = replace(session.loops[0], id="valid", diagnosed=False, role="validation")
    edit = Edit("edit", "an edit", (AHEAD,))
    for role, written in (("validation", True), ("training", False)):
        seen = session.but(loops=[*session.loops, replace(validation, role=role)])
        patch_of_it, contents = make_patch(seen, [edit], lambda _: text.encode())
        assert (patch_of_it.diff is not None) == written
        assert (f"fit(ds{APPLIED}, valid)" in contents.get(SCRIPT, b"").decode()) == written


@pytest.mark.parametrize(
    ("loop", "seen", "reason"),
    [
        ("for batch in enumerate(zip(ds, ds)):\n    step(batch)\n", {}, "no dataset"),
        ("for batch in ds:\n    step(batch)\n", {"handed_on": True}, "itself"),
        ("for batch in ds:\n    step(batch)\n", {"kind": "tf_function"}, "itself"),
        (
            "def run(x):\n    for batch in x:\n        step(batch)\n\n\nrun(ds)\nrun([1])\n",
            {},
            "in 2 places",
        ),
        ("bar = tqdm(ds)\nfor batch in bar:\n    step(batch)\n", {}, "no dataset"),
        ("with tqdm(ds) as bar:\n    for batch in bar:\n        step(batch)\n", {}, "no dataset"),
        ("it = ds.as_numpy_iterator()\nfor batch in it:\n    step(batch)\n", {}, "no dataset"),
        ("for batch in track(ds):\n    step(batch)\n", {}, "no dataset"),
        ("for batch in tfds.as_numpy(ds):\n    step(batch)\n", {}, "no dataset"),
        ("if shown:\n    ds = tqdm(ds)\nfor batch in ds:\n    step(batch)\n", {}, "no dataset"),
        (
            "def shown():\n    return tqdm(ds)\n\n\nfor batch in shown():\n    step(batch)\n",
            {},
            "no dataset",
        ),
    ],
)
def test_a_copy_to_the_device_is_refused_where_the_loop_may_read_no_dataset(
    loop: str, seen: dict[str, Any], reason: str
) -> None:
    made, _ = copied_ahead(f"{OWN_LOOP}{loop}", **seen)
    assert made.diff is None
    assert reason in made.left_out[0].reason


@pytest.mark.parametrize(
    ("body", "left"),
    [
        ("if done(batch):\n            break", True),
        ("for row in batch:\n            if done(row):\n                break", False),
        ("for row in batch:\n            if done(row):\n                return", True),
        ("def stop():\n            return", False),
        ("step(batch)", False),
    ],
)
def test_no_cache_is_written_for_a_loop_that_leaves_before_the_end(body: str, left: bool) -> None:
    def made(**seen: int) -> Patch:
        loop = make_loop(file=SCRIPT, line=at, kind="eager", keras=None, **seen)
        session = session_of(text, *ops(text)).but(loops=[loop])
        return make_patch(session, [Edit("e", "a cache", (CACHE,))], lambda _: text.encode())[0]

    text = ONE_LINE.replace("for batch in ds:\n    step(batch)\n", "train(ds)\n")
    text += f"def train(ds):\n    for batch in ds:\n        {body}\n"
    at = line_of(text, "for batch")
    assert (made(iterators=3).diff is None) == left
    # In its first epoch it is not known, and once the data has ended, it was all read.
    first, read = made(iterators=1), made(iterators=3, epoch_steps=9)
    assert None not in (first.diff, read.diff)
    assert (bool(first.shared), read.shared) == (left, [])
    # A look at a batch beside the training reads no epoch.
    assert made(iterators=3, diagnosed=False, role="other").diff is not None


FILTERED = (
    HEAD
    + """def parse(row):
    return tf.math.log(row)

ds = read(files)
ds = ds.map(parse).filter(lambda row: row > 0)
ds = ds.batch(3)
"""
)
IN_CHAIN = (
    HEAD
    + """def parse(row):
    return tf.math.log(row)

ds = (
    read(files)
    .map(parse)  # costs much
    .filter(lambda row: row > 0)
    .batch(3)
)
"""
)


WHERE_ROWS = "rows_where(lambda row: row > 0)"


def in_own_batches(kinds: Sequence[str]) -> list[Replace]:
    """Return what has operations hand batches on from the first to the last."""
    ends = [{"first": not n, "last": n == len(kinds) - 1} for n in range(len(kinds))]
    pairs = zip(kinds, ends, strict=True)
    return [Replace(one, IN_BATCHES, {"elements": 64, **values}) for one, values in pairs]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("", "", f"ds = ds.batch(64).map(parse).map({WHERE_ROWS}).unbatch()\n"),
        ("ds = ds.map(parse).filter", "ds = ds.map(parse)\nif clean:\n    ds = ds.filter", None),
        (
            "ds = ds.map(parse).filter",
            "parsed = ds.map(parse)\nother = parsed.filter(good)\nds = parsed.filter",
            None,
        ),
        ("ds = ds.map(parse).filter", "ds = limited(ds.map(parse), 9).filter", None),
        (
            "ds = ds.map(parse).filter",
            "for part in parts:\n    ds = ds.map(parse)\n    ds = ds.filter",
            None,
        ),
        (
            "ds = ds.map(parse).filter",
            "ds = ds.map(parse)\nds = ds.filter",
            f"ds = ds.batch(64).map(parse)\nds = ds.map({WHERE_ROWS}).unbatch()\n",
        ),
    ],
)
def test_a_map_and_a_filter_hand_batches_on_if_nothing_comes_between(
    old: str, new: str, expected: str | None
) -> None:
    text = FILTERED.replace(old, new, 1)
    function = make_function(file=SCRIPT, line=line_of(text, "def parse"))
    places = {"map": ".map(", "filter": ".filter(lambda", "batch": ".batch("}
    calls = [op(text, kind, place, function=function) for kind, place in places.items()]
    changes = in_own_batches(["map", "filter"])
    if expected is None:
        assert "come between" in refused(text, calls, *changes)
        return
    after = patched(text, calls, *changes)
    assert expected in after
    assert "def rows_where(predicate):" in after


@pytest.mark.parametrize(
    ("old", "new", "written"),
    [
        ("filter(lambda", "filter(predicate=lambda", "map(map_func=rows_where(lambda"),
        ("ds = ds.map(parse)", "ds = (ds if few else other).map(parse)", None),
        ("ds = ds.batch(3)", "ds = ds.batch(3)\npool.map(parse, rows)", None),
    ],
)
def test_what_gets_batches_is_a_datasets_own_call(old: str, new: str, written: str | None) -> None:
    text = FILTERED.replace(old, new, 1)
    row = RowOperation("Pack", [(SCRIPT, line_of(text, "tf.math.log"))], 0)
    text = text.replace("tf.math.log(row)", "tf.stack([row, row])")
    function = make_function(file=SCRIPT, line=line_of(text, "def parse"), row_operations=[row])
    plain = make_function(file=SCRIPT)
    kinds = {"map": function, "filter": plain, "batch": plain}
    places = {"map": "map(parse).", "filter": ".filter(", "batch": ".batch("}
    calls = [op(text, kind, places[kind], function=one) for kind, one in kinds.items()]
    changes = in_own_batches(["map", "filter"])
    if written is None:
        refused(text, calls, *changes)
    else:
        assert written in patched(text, calls, *changes)


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (
            "ds = ds.map(parse)\n",
            "ds = ds.batch(64).map(parse).unbatch().apply(length_of(ds))\n",
        ),
        (
            "ds = read(files).map(parse)\n",
            "ds = (rows := read(files)).batch(64).map(parse).unbatch().apply(length_of(rows))\n",
        ),
        (
            "ds = (\n    read(files)\n    .map(parse)\n)\n",
            "ds = (\n    (rows := read(files)\n    ).batch(64)\n    .map(parse)\n"
            "    .unbatch().apply(length_of(rows))\n)\n",
        ),
    ],
)
def test_elements_of_a_known_number_keep_it(written: str, expected: str) -> None:
    text = (
        HEAD + f"def parse(row):\n    return row\n\nds = read(files)\n{written}ds = ds.batch(3)\n"
    )
    function = make_function(file=SCRIPT, line=line_of(text, "def parse"))
    calls = [
        op(text, "map", ".map(", function=function, cardinality=900),
        op(text, "batch", ".batch("),
    ]
    after = patched(text, calls, Replace("map", IN_BATCHES, {"elements": 64}))
    assert expected in after, after
    compile(after, SCRIPT, "exec")


@pytest.mark.parametrize(
    ("rows", "kept"),
    [("[:9]", True), ("[-9:]", False), ("[1:]", False), ("[:-1]", False), ("[::2]", False)],
)
@pytest.mark.parametrize(
    "padding", [{"graph_ops": {"SparseToDense": 1, "StridedSlice": 1}}, {"padded_features": 1}]
)
def test_rows_with_padding_are_cut_from_their_start_alone(
    rows: str, kept: bool, padding: dict[str, Any]
) -> None:
    text = HEAD + (
        f"def parse(row):\n    return tf.sparse.to_dense(row){rows}\n\n"
        "ds = read(files).map(parse).batch(3)\n"
    )
    row = RowOperation("StridedSlice", [(SCRIPT, line_of(text, "to_dense"))], 1)
    function = make_function(
        file=SCRIPT, line=line_of(text, "def parse"), row_operations=[row], **padding
    )
    calls = [op(text, "map", ".map(", function=function), op(text, "batch", ".batch(")]
    change = Replace("map", IN_BATCHES, {"elements": 64})
    if kept:
        assert "to_dense(row)[:, :9]" in patched(text, calls, change)
    else:
        assert "padded" in refused(text, calls, change)


def moves_beside(folder: Path, files: dict[str, str], name: str) -> bool:
    """Whether the map of data.py, of that function or of a lambda, moves behind its batch."""
    for path, content in files.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")
    at, data = str(folder / "data.py"), files["data.py"]
    mapped = line_of(data, ".map(")
    through = [] if name else [(at, mapped)]
    row = RowOperation("Pack", [*through, (at, line_of(data, "tf.stack"))], 0)
    line = line_of(data, f"def {name}") if name else mapped
    function = make_function(name=name or "<lambda>", file=at, line=line, row_operations=[row])
    calls = [op(data, "map", ".map(", function=function, file=at)]
    calls.append(op(data, "batch", ".batch(", file=at))
    session = session_of(files["train.py"], *calls)
    session = session.but(script=session.script.but(directory=str(folder), path="train.py"))
    edit = Edit("e", "an edit", (Move("map", "batch"),))
    return make_patch(session, [edit], current_file)[0].diff is not None


@pytest.mark.parametrize(
    ("path", "text", "kept"),
    [
        ("predict.py", "from data import parse\nx = parse(line)\n", False),
        ("tests/test_data.py", "import data\nassert data.parse(line) == 3\n", False),
        ("predict.py", "from data import make\nx = make(line)\n", True),
        ("other.py", "from another import parse\nx = parse(line)\n", True),
        ("predict.py", "from data import *\nx = parse(line)\n", False),
        ("predict.py", "from data import SPEC\nx = parse_args()\n", True),
        (".venv/predict.py", "from data import parse\nx = parse(line)\n", True),
    ],
)
@pytest.mark.parametrize("mapped", ["parse", "lambda row: parse(row)"])
def test_a_function_that_a_script_beside_calls_for_rows_stays(
    tmp_path: Path, path: str, text: str, kept: bool, mapped: str
) -> None:
    data = HEAD + (
        "def parse(row):\n    return tf.stack([row, row])\n\n\n"
        f"def make(x):\n    return read(x).map({mapped}).batch(3)\n"
    )
    files = {
        "train.py": "from data import make\n\nmodel.fit(make(x))\n",
        "data.py": data,
        path: text,
    }
    assert moves_beside(tmp_path, files, "parse" if mapped == "parse" else "") == kept


@pytest.mark.parametrize(
    ("use", "kept"),
    [
        ("x = Data().decode(line)", False),
        ("data = Data()\nx = data.decode(line)", False),
        ("data = Data()\nx = data.make(line)", True),
    ],
)
def test_a_method_that_a_script_beside_calls_for_rows_stays(
    tmp_path: Path, use: str, kept: bool
) -> None:
    data = HEAD + (
        "class Data:\n    def decode(self, row):\n        return tf.stack([row, row])\n\n"
        "    def make(self, x):\n        return read(x).map(self.decode).batch(3)\n"
    )
    train = "from data import Data\n\nmodel.fit(Data().make(x))\n"
    beside = f"from data import Data\n\n{use}\n"
    files = {"train.py": train, "data.py": data, "predict.py": beside}
    assert moves_beside(tmp_path, files, "decode") == kept


@pytest.mark.parametrize(
    ("own", "other", "kept"),
    [
        ("lambda r: row(r, 2)", "lambda r: row(r, 2)", True),
        ("partial(row, size=2)", "partial(row, size=2)", True),
        ("lambda r: row(r, 2)", "lambda r: row(r, 3)", False),
        ("partial(row, size=2)", "partial(row, size=3)", False),
        ("whole", "lambda r: row(r, 2)", False),
        ("lambda r: row(r, 2)", "whole", False),
    ],
)
def test_another_map_of_a_lambda_or_partial_of_the_function_moves_too(
    own: str, other: str, kept: bool
) -> None:
    whole = "def whole(r):\n    return row(r, 2)\n\n\n" if "whole" in (own, other) else ""
    text = HEAD + (
        "def row(r, size):\n    return tf.stack([r] * size)\n\n\n"
        f"{whole}train = read(files).map({own}).shuffle(9).batch(8)\n"
        f"valid = read(others).map({other}).batch(4)\nmodel.fit(train)\n"
    )
    kind = own.split(" ", maxsplit=1)[0].split("(", maxsplit=1)[0]
    begins = {"lambda": "read(files)", "whole": "def whole", "partial": "def row"}[kind]
    through = {"lambda": ["read(files)"], "whole": ["return row"], "partial": []}[kind]
    places = [(SCRIPT, line_of(text, one)) for one in (*through, "tf.stack")]
    row = RowOperation("Pack", places, 0)
    function = make_function(file=SCRIPT, line=line_of(text, begins), row_operations=[row])
    given = {"map": {"function": function}}
    ops = [
        op(text, one, "read(files)", **given.get(one, {})) for one in ("map", "shuffle", "batch")
    ]
    change = Move("map", "batch")
    if kept:
        after = patched(text, ops, change)
        assert f".shuffle(9).batch(8).map({own})\n" in after
        assert f"read(others).batch(4).map({other})\n" in after
    else:
        assert "more than one place" in refused(text, ops, change)


@pytest.mark.parametrize("ran", [True, False])
def test_another_filter_of_the_predicate_takes_batches_too_if_it_ran(ran: bool) -> None:
    text = HEAD + (
        "def keep(row):\n    return tf.reduce_all(row > 0)\n\n"
        "ds = read(files).filter(keep).batch(3)\nval = read(others).filter(keep)\n"
    )
    row = RowOperation("All", [(SCRIPT, line_of(text, "reduce_all"))], 1)
    function = make_function(file=SCRIPT, line=line_of(text, "def keep"), row_operations=[row])
    calls = [op(text, "filter", "(files).filter(", function=function), op(text, "batch", ".batch(")]
    other = op(text, "filter", "(others).filter(", function=function, id="other")
    change = Replace("filter", IN_BATCHES, {"elements": 64})
    if not ran:
        assert "more than one place" in refused(text, calls, change)
        return
    after = patched(text, [*calls, other], change)
    assert "row > 0, axis=1" in after
    assert after.count(".batch(64).map(rows_where(keep)).unbatch()") == 2


def test_batches_are_handed_on_line_by_line_to_a_cache_behind_the_last() -> None:
    function = make_function(file=SCRIPT, line=line_of(IN_CHAIN, "def parse"))
    kinds = ("map", "filter", "batch")
    calls = [op(IN_CHAIN, kind, f".{kind}(", function=function) for kind in kinds]
    changes = in_own_batches(["map", "filter"])
    after = patched(IN_CHAIN, calls, *changes, Insert("filter", "cache"))
    assert (
        "    read(files)\n    .batch(64)\n    .map(parse)  # costs much\n"
        f"    .map({WHERE_ROWS})\n    .unbatch()\n    .cache()\n    .batch(3)\n"
    ) in after
    assert "for elements" in refused(IN_CHAIN, calls, *changes, Insert("map", "cache"))


@pytest.mark.parametrize(
    ("text", "written"),
    [
        (CHAINED, "    optimizer=LazyAdam(1e-3),\n"),
        (REBOUND, 'model.compile(LazyAdam(), loss="mse")'),
    ],
)
def test_a_row_wise_optimizer_keeps_its_arguments(text: str, written: str) -> None:
    after = patched(text, ops(text), SetModel({"optimizer": "row_wise"}))
    assert written in after
    assert after.startswith(
        "import tensorflow as tf\nfrom pipediag.optimizers import LazyAdam\n\nds"
    )


def test_an_optimizer_with_one_pass_takes_all_arguments() -> None:
    text = CHAINED.replace("Adam(1e-3)", "Adam(1e-3, loss_scale_factor=2.0, **settings)")
    keras = {"optimizer_settings": {"use_ema": True}}
    found, after = patch(text, ops(text), SetModel({"optimizer": "fused"}), keras=keras)
    assert any("`pipediag.optimizers`" in note for note in found.shared)
    assert "    optimizer=FusedAdam(1e-3, loss_scale_factor=2.0, **settings),\n" in after
    assert "from pipediag.optimizers import FusedAdam\n" in after


def test_an_optimizer_that_averages_weights_is_left_alone() -> None:
    text = CHAINED.replace("Adam(1e-3)", "Adam(1e-3, **settings)")
    keras = {"optimizer_settings": {"use_ema": True}}
    change = SetModel({"optimizer": "row_wise"})
    assert "`use_ema`" in refused(text, ops(text), change, keras=keras)


NESTED = (
    HEAD
    + """def rows(path):
    return tf.data.TFRecordDataset(path).map(parse)


ds = files.flat_map(rows)
ds = ds.batch(3)
"""
)


def nested() -> list[Operation]:
    return [
        op(NESTED, "flat_map", id="outer"),
        op(NESTED, "TFRecordDataset", inside_function_of="outer"),
        op(NESTED, "map", ".map(parse)", inside_function_of="outer"),
        op(NESTED, "batch"),
    ]


@pytest.mark.parametrize(
    ("change", "written"),
    [
        (
            Replace("outer", "interleave", {"cycle_length": 8, "num_parallel_calls": AUTOTUNE}),
            f"ds = files.interleave(rows, cycle_length=8, {TUNED})\n",
        ),
        (
            Replace("outer", "parallel_flat_map", {"cycle_length": 4, "num_parallel_calls": 4}),
            "files.interleave(lambda *element: tf.data.Dataset.from_tensors(element)"
            ".flat_map(rows), cycle_length=4, num_parallel_calls=4)",
        ),
        (PARALLEL, f".map(parse, {TUNED})\n"),
    ],
)
def test_a_flat_map_reads_several_at_once_and_what_it_calls_is_changed_within(
    change: Change, written: str
) -> None:
    assert written in patched(NESTED, nested(), change)


WORKERS = Replace("generator", "PyDataset", {"workers": 16, "max_queue_size": 32})
PYDATASET = """import keras


class Rows(keras.utils.PyDataset):
    def __init__(self, table):
        super().__init__()
        self.table = table


model.fit(Rows(table))
"""


def workers(text: str) -> str:
    made = op(text, "from_generator", ".fit(", id="generator", made_by_framework=True)
    ahead = op(text, "prefetch", ".fit(", made_by_framework=True)
    changes = (WORKERS, Remove("prefetch"), SetOptions({"autotune.enabled": False}))
    return patched(text, [made, ahead], *changes, keras={"source": "Rows", "source_file": SCRIPT})


BARE = "import keras\n\n\nclass Rows(PyDataset):\n    size = 3\n\n\nmodel.fit(Rows())\n"
INNER = BARE.replace(
    "    size = 3\n",
    "    class Cache(dict):\n        def __init__(self):\n            super().__init__()\n",
)


@pytest.mark.parametrize(
    ("text", "call"),
    [
        (PYDATASET, "super().__init__("),
        (BARE, "fit(Rows("),
        (INNER, "fit(Rows("),
        (f"{BARE}model.evaluate(Rows())\n", "(Rows("),
    ],
)
def test_workers_are_given_where_a_pydataset_calls_keras_or_is_made(text: str, call: str) -> None:
    assert workers(text) == text.replace(call, f"{call}workers=16, max_queue_size=32")


@pytest.mark.parametrize(
    "base", ["super(Rows, self).__init__(", "keras.utils.PyDataset.__init__(self"]
)
def test_workers_are_given_to_keras_however_it_is_called(base: str) -> None:
    given = "workers=16, max_queue_size=32)"
    after = f"{base}{', ' if base.endswith('self') else ''}{given}"
    text = PYDATASET.replace("super().__init__()", f"{base})")
    assert workers(text) == text.replace(f"{base})", after)


@pytest.mark.parametrize("first", ["self.table = table", '"""Keep a table."""'])
def test_keras_is_called_where_a_pydataset_does_not_call_it(first: str) -> None:
    text = PYDATASET.replace("super().__init__()", first)
    call = "        super().__init__(workers=16, max_queue_size=32)\n"
    found = workers(text)
    assert found.replace(call, "") == text
    assert found.index(call) < found.index("self.table = table")
    assert first not in found[found.index(call) :] or first.startswith("self")


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("(keras.utils.PyDataset)", "(Mixed, keras.utils.PyDataset)", False),
        ("(keras.utils.PyDataset)", "(keras.utils.PyDataset, Mixed)", True),
        ("self.table = table", "self.workers = 1", False),
    ],
)
def test_workers_that_another_class_or_the_own_one_would_get_are_not_given(
    old: str, new: str, kept: bool
) -> None:
    text = PYDATASET.replace(old, new)
    if kept:
        assert "super().__init__(workers=16" in workers(text)
    else:
        keras = {"source": "Rows", "source_file": SCRIPT}
        refused(text, [op(text, "from_generator", ".fit(", id="generator")], WORKERS, keras=keras)


def test_workers_go_with_arguments_that_a_pydataset_hands_on() -> None:
    text = PYDATASET.replace("table):", "table, **kwargs):").replace("t__()", "t__(**kwargs)")
    handed = 'super().__init__(**{**kwargs, "workers": 16, "max_queue_size": 32})'
    assert workers(text) == text.replace("super().__init__(**kwargs)", handed)


def test_a_pydataset_whose_base_is_in_another_file_is_left_alone() -> None:
    text = PYDATASET.replace("keras.utils.PyDataset", "Imported")
    keras = {"source": "Rows", "source_file": SCRIPT}
    made = op(text, "from_generator", ".fit(", id="generator", made_by_framework=True)
    assert "first of its bases" in refused(text, [made], WORKERS, keras=keras)


def test_the_class_of_a_pydataset_of_keras_s_own_is_left_alone() -> None:
    made = op(PYDATASET, "from_generator", ".fit(", id="generator", made_by_framework=True)
    keras = {"source": "DirectoryIterator", "source_file": None}
    assert "Keras's own" in refused(PYDATASET, [made], WORKERS, keras=keras)


def test_an_option_that_the_file_sets_is_set_otherwise() -> None:
    text = REBOUND.replace(
        "model.compile",
        "o = tf.data.Options()\no.autotune.enabled = False\nds = ds.with_options(o)\nmodel.compile",
    )
    change, given = SetOptions({"autotune.enabled": True}), {"autotune.enabled": False}
    after = patched(text, ops(text), change, options=given)
    assert after == text.replace("enabled = False", "enabled = True")
    twice = f"{text}o.autotune.enabled = False\n"
    assert "several times" in refused(twice, ops(twice), change, options=given)


STEPS = """import tensorflow
class Trainer:
    @timed
    # Trains.
    def step(self, x):
        return x
"""


def test_a_step_is_compiled_within_the_decorators_that_it_has() -> None:
    assert patched(STEPS, [], CompileFunction(SCRIPT, 3, "Trainer.step")) == STEPS.replace(
        "    def step", "    @tensorflow.function\n    def step"
    )


@pytest.mark.parametrize(
    "before", ["@tensorflow.function", "@tensorflow.function(jit_compile=True)"]
)
def test_a_step_is_traced_for_all_shapes(before: str) -> None:
    text = STEPS.replace("@timed", before)
    change = CompileFunction(SCRIPT, 3, "Trainer.step", reduce_retracing=True)
    assert "no `@tensorflow.function`" in refused(STEPS, [], change)
    after = before.replace(")", ", reduce_retracing=True)")
    after = after if ")" in before else f"{before}(reduce_retracing=True)"
    assert patched(text, [], change) == text.replace(before, after)


def test_the_data_of_a_prediction_stay_as_they_are_laid_out() -> None:
    data = "{\n        'user': users,  # all\n    }"
    text = f"scores = model.predict(\n    {data},\n    batch_size=64,\n    verbose=0,\n)[:, 0]\n"
    made, after = patch(text, [], PredictOnBatch(SCRIPT, 1))
    assert after == f"scores = model.predict_on_batch({data})[:, 0]\n"
    assert "memory" in made.shared[0]


def test_a_comment_among_the_arguments_that_would_go_is_kept() -> None:
    text = "scores = model.predict(\n    users,  # all of them\n    batch_size=64,\n)\n"
    assert "comment" in refused(text, [], PredictOnBatch(SCRIPT, 1))


def test_a_model_is_called_through_a_function_behind_the_imports() -> None:
    text = "import tensorflow as tf\n\nscores = [\n    self.model((a, b), training=False)[0],\n]\n"
    after = patched(text, [], CompileCall(SCRIPT, 4, "self.model"))
    assert after == (
        "import tensorflow as tf\n\n\n@tf.function(reduce_retracing=True)\n"
        "def call_model(model, *args, **kwargs):\n"
        '    """Call a model in a graph."""\n    return model(*args, **kwargs)\n'
        "\nscores = [\n    call_model(self.model, (a, b), training=False)[0],\n]\n"
    )


def test_a_method_of_a_model_is_called_through_a_function() -> None:
    text = "import tensorflow as tf\n\nstates = self.model.encode(np.array(rows)).numpy()\n"
    after = patched(text, [], CompileCall(SCRIPT, 3, "self.model", "encode"))
    assert "return getattr(model, method)(*args, **kwargs)" in after
    assert after.endswith('\nstates = call_method(self.model, "encode", np.array(rows)).numpy()\n')


def test_a_step_becomes_a_function_before_its_outermost_loop() -> None:
    text = (
        f"{HEAD}def train(data):\n    for epoch in range(3):\n        for x in data:\n"
        "            with tf.GradientTape() as tape:\n                loss = model(x)\n"
        "            optimizer.apply_gradients(tape.gradient(loss, model.weights))\n"
        "            losses.append(float(loss))\n"
    )
    assert patched(text, [], ExtractStep(SCRIPT, 6)) == (
        f"{HEAD}def train(data):\n\n    @tf.function(reduce_retracing=True)\n"
        "    def train_step(x):\n        with tf.GradientTape() as tape:\n"
        "            loss = model(x)\n"
        "        optimizer.apply_gradients(tape.gradient(loss, model.weights))\n"
        "        return loss\n\n    for epoch in range(3):\n        for x in data:\n"
        "            loss = train_step(x)\n            losses.append(float(loss))\n"
    )


def test_a_step_that_needs_to_know_the_shape_of_its_batch_is_not_relaxed() -> None:
    text = (
        f"{HEAD}for x in data:\n    with tf.GradientTape() as tape:\n        loss = model(x)\n"
        "    optimizer.apply_gradients(tape.gradient(loss, model.weights))\n"
    )
    after = patched(text, [], ExtractStep(SCRIPT, 4, reduce_retracing=False))
    assert "@tf.function  #" in after
    assert "reduce_retracing" not in after


@pytest.mark.parametrize(
    ("call", "after"),
    [
        ("padded_batch(32)", "apply(lambda examples: in_buckets(examples, 32))"),
        (
            "padded_batch(\n    32,\n    drop_remainder=True,\n)",
            "apply(\n    lambda examples: in_buckets(examples, 32,\n    drop_remainder=True),\n)",
        ),
        (
            "padded_batch(32, ([None], []), (0, 1), drop_remainder=True)",
            "apply(lambda examples: in_buckets(examples, 32, padded_shapes=([None], []), "
            "padding_values=(0, 1), drop_remainder=True))",
        ),
    ],
)
def test_a_padded_batch_becomes_buckets_with_its_arguments(call: str, after: str) -> None:
    text = f"{HEAD}ds = make()\nds = ds.{call}\nmodel.fit(ds)\n"
    change = Replace("padded_batch", "bucket_by_sequence_length", {"buckets": 4})
    found = patched(text, [op(text, "padded_batch")], change)
    head, _, rest = found.partition("def in_buckets(")
    assert "import numpy as np" in head
    assert rest.endswith(f"ds = ds.{after}\nmodel.fit(ds)\n")


def test_a_padded_batch_whose_arguments_are_not_written_out_is_left() -> None:
    text = f"{HEAD}ds = make()\nds = ds.padded_batch(*given)\nmodel.fit(ds)\n"
    change = Replace("padded_batch", "bucket_by_sequence_length", {"buckets": 4})
    assert refused(text, [op(text, "padded_batch")], change)


PADDED = (
    HEAD
    + """ids = keras.Input((LENGTH,), name="ids")
ds = make()
ds = ds.padded_batch(32, padded_shapes=([LENGTH], []))
model.fit(ds)
"""
)
CUT = Insert("padded_batch", "cut_padding")


def declaring(declared: str) -> str:
    return PADDED.replace('keras.Input((LENGTH,), name="ids")', declared)


def shorter(text: str, **keras: Any) -> str:
    lengths = {"fixed_lengths": {"ids": 200}, **keras}
    return patched(text, [op(text, "padded_batch")], CUT, keras=lengths)


def test_padding_is_cut_behind_the_batch() -> None:
    found = shorter(declaring("keras.Input((LENGTH,))"))
    assert "def cut_padding(features, *others" in found
    assert "ds = ds.map(cut_padding, num_parallel_calls=tf.data.AUTOTUNE)\n" in found


def test_padding_of_each_input_is_cut_by_itself() -> None:
    text = declaring("keras.Input((LENGTH,))")
    apart = Insert("padded_batch", "cut_padding", {"together": False})
    found = patched(text, [op(text, "padded_batch")], apart, keras={"fixed_lengths": {"ids": 200}})
    assert (
        "ds = ds.map(lambda *batch: cut_padding(*batch, together=False), "
        "num_parallel_calls=tf.data.AUTOTUNE)\n"
    ) in found


def test_buckets_of_rows_without_their_fixed_length_are_code_to_paste() -> None:
    text = declaring("keras.Input((LENGTH,))")
    change = Replace("padded_batch", "bucket_by_sequence_length", {"to_longest": True})
    assert "padded_shapes" in refused(text, [op(text, "padded_batch")], change)


@pytest.mark.parametrize(
    ("declared", "after"),
    [
        ("keras.Input((LENGTH,))", "keras.Input((None,))"),
        ("Input((None,)), Input((LENGTH,))", "Input((None,)), Input((None,))"),
        (
            'keras.Input(shape=[n - 1], dtype="int32", name="ids")',
            'keras.Input(shape=[None], dtype="int32", name="ids")',
        ),
        ("InputLayer((200,))", "InputLayer((None,))"),
        (
            'keras.Input((LENGTH,)), keras.Input((LENGTH,), name="ids")',
            'keras.Input((LENGTH,)), keras.Input((None,), name="ids")',
        ),
        (
            'Input((9,)), Input((8, 8)), Input((n,), name=""), Input(shape=(n,))',
            'Input((9,)), Input((8, 8)), Input((n,), name=""), Input(shape=(None,))',
        ),
    ],
)
def test_an_input_of_one_length_takes_rows_of_any(declared: str, after: str) -> None:
    assert f"ids = {after}\n" in shorter(declaring(declared))


@pytest.mark.parametrize(
    ("declared", "reason"),
    [
        ("make_input()", "0 may declare it"),
        ("keras.Input((LENGTH,)), keras.Input((LENGTH,))", "2 may declare it"),
        ("keras.Input(**given)", "0 may declare it"),
        ("keras.Input(shape)", "does not write out"),
        ("keras.Input(batch_shape=(32, LENGTH))", "does not write out"),
    ],
)
def test_an_input_that_is_not_found_is_named(declared: str, reason: str) -> None:
    text = declaring(declared)
    keras = {"fixed_lengths": {"ids": 200}}
    found = refused(text, [op(text, "padded_batch")], CUT, keras=keras)
    assert "Give the input `ids` of 200 the shape `(None,)`" in found
    assert reason in found


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("from nets import model", "/work/nets/model.py"),
        ("import nets.model as m", "/work/nets/model.py"),
        ("from nets.model import *", "/work/nets/model.py"),
        ("from .model import build", "/work/model.py"),
        ("import nets", "/work/nets/__init__.py"),
    ],
)
def test_an_input_is_found_in_a_module_that_the_script_imports(
    line: str, path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = declaring("build()").replace(HEAD, f"{HEAD}{line}\n")
    files = {SCRIPT: text.encode(), path: b"import keras\n\nids = keras.Input((LENGTH,))\n"}
    monkeypatch.setattr(Path, "is_file", lambda place: str(place) in files)

    def read(name: str) -> bytes:
        if name not in files:
            raise NotPatchableError("It is not there.")
        return files[name]

    keras = {"fixed_lengths": {"ids": 200}}
    session = session_of(text, op(text, "padded_batch"), keras=keras)
    made, contents = make_patch(session, [Edit("edit", "an edit", (CUT,))], read)
    assert made.left_out == []
    assert contents[path].endswith(b"ids = keras.Input((None,))\n")
    assert set(contents) == set(files)


def test_inputs_that_are_no_long_rows_are_left() -> None:
    declared = "Input((8,)), Input((64,)), Input((LENGTH,))"
    lengths = {"user": 8, "picture": 64, "ids": 200}
    found = shorter(declaring(declared.replace("LENGTH", "200")), fixed_lengths=lengths)
    assert "Input((8,)), Input((64,)), Input((None,))" in found


UNWRITABLE: dict[str, tuple[Change, str]] = {
    "a call that is not there": (PredictOnBatch(SCRIPT, 1), "0 times"),
    "a model that is not called": (CompileCall(SCRIPT, 1, "net"), "0 times"),
    "a step that is not there": (ExtractStep(SCRIPT, 1), "GradientTape"),
    "a draw that is not there": (RewriteCall("map", SCRIPT, 1, "f"), "0 times"),
    "a function that is not there": (CompileFunction(SCRIPT, 1, "f"), "not found"),
    "sixteen bits": (SetModel({"dtype_policy": "mixed_bfloat16"}), "all layers but the last"),
    "buckets": (Replace("batch", "bucket_by_sequence_length", {"buckets": 8}), "padded_batch"),
    "a copy to a device that is not the end": (
        Insert("map", "prefetch_to_device", {"device": "/gpu:0"}),
        "nothing may follow",
    ),
    "what is no operation": (Insert("map", "x;import os", {}), "one call"),
    "what is no argument": (SetParameters("map", {"a=1,b": 1}), "argument"),
    "what is no option": (SetOptions({"a = 1;b": 1}), "option"),
    "an operation that is not known": (Move("other", "map"), "recorded"),
    "what is taken out": (Remove("shuffle"), "Only you know"),
}


@pytest.mark.parametrize(("change", "reason"), UNWRITABLE.values(), ids=UNWRITABLE)
def test_what_can_not_be_written_is_said(change: Change, reason: str) -> None:
    assert reason in refused(REBOUND, ops(REBOUND), change)


def test_every_kind_of_change_is_in_these_tables() -> None:
    made: set[type[Any]] = {type(each) for row in TABLE.values() for each in row[1]}
    made |= {type(row[0]) for row in UNWRITABLE.values()}
    assert made == set(get_args(Change))
