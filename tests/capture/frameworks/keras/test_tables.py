from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from pipediag.capture.frameworks.keras.tables import known_tables, vocabularies


class Embedding:
    __module__ = "keras.src.layers.core.embedding"
    built = True

    def __init__(self, name: str, trainable: bool = True) -> None:
        self.name, self.trainable = name, trainable
        self.input_dim, self.output_dim = 100, 8
        self.embeddings: Any = SimpleNamespace(dtype="float32")
        self._embeddings: Any = self.embeddings


class Tied(Embedding):
    mask_zero = True


class Tokens:
    def __init__(self, mask_token: str | None, num_oov_indices: int = 1) -> None:
        self.mask_token, self.num_oov_indices = mask_token, num_oov_indices
        self.lookup_table = SimpleNamespace(resource_handle="handle")


def model(*layers: Any, optimizer: Any = None) -> Any:
    return SimpleNamespace(layers=layers, optimizer=optimizer)


def test_tables_and_their_slots() -> None:
    shapes = [(), (100, 8), (100, 8), (8, 1)]
    optimizer = SimpleNamespace(variables=[SimpleNamespace(shape=shape) for shape in shapes])
    layers = [Embedding("words"), Embedding("frozen", trainable=False), object()]

    tables = [one.record for one in known_tables(model(*layers, optimizer=optimizer))]

    assert [(t.layer, t.rows, t.dim, t.dtype, t.trainable, t.slots) for t in tables] == [
        ("words", 100, 8, "float32", True, 2),
        ("frozen", 100, 8, "float32", False, 0),
    ]


def test_the_path_of_a_table_is_known_where_keras_has_one() -> None:
    placed, without = Embedding("words"), Embedding("words")
    placed._embeddings = SimpleNamespace(dtype="float32", path="model/words/embeddings")
    records = [one.record for one in known_tables(model(placed, without))]

    assert [one.path for one in records] == ["model/words/embeddings", None]


def test_optimizers_whose_variables_are_a_method() -> None:
    optimizer = SimpleNamespace(variables=lambda: [SimpleNamespace(shape=(100, 8))])

    (table,) = known_tables(model(Embedding("words"), optimizer=optimizer))

    assert table.record.slots == 1


def test_a_class_made_of_an_embedding_is_one() -> None:
    (table,) = known_tables(model(Tied("words")))

    assert table.record.mask_zero
    assert table.variable is not None


def test_a_class_of_the_script_that_has_the_name_alone_is_none() -> None:
    theirs = type("Embedding", (), {"built": True, "name": "theirs"})()

    assert known_tables(model(theirs)) == []


def test_layers_in_submodels_are_found() -> None:
    nested = SimpleNamespace(_flatten_layers=lambda: [Embedding("words")], layers=[])

    assert [one.record.layer for one in known_tables(nested)] == ["words"]


def test_what_tokens_that_are_unknown_are_given() -> None:
    inner = SimpleNamespace(_lookup_layer=Tokens(mask_token="", num_oov_indices=1))

    found = vocabularies(model(Tokens("", 2), Tokens(None), inner, object()))

    assert [(one.out_of_vocabulary, one.zero_is_a_token) for one in found] == [
        ((1, 2), False),
        ((0,), True),
        ((1,), False),
    ]


class Variable:
    dtype = SimpleNamespace(name="float32")

    def __init__(self, rows: int, dim: int) -> None:
        self.shape = (rows, dim)
        count = SimpleNamespace(num_elements=lambda: rows * dim)
        self.value = SimpleNamespace(shape=count, dtype=SimpleNamespace(size=4))


def frozen_after_its_optimizer_was_built(**lists: Any) -> int | None:
    words = Embedding("words", trainable=False)
    words._embeddings = Variable(100, 8)
    trained = [Variable(8, 1), words._embeddings]
    optimizer = SimpleNamespace(_trainable_variables=trained, variables=[], **lists)
    (table,) = known_tables(model(words, optimizer=optimizer))
    return table.record.idle_slot_bytes


def test_slots_of_a_table_that_was_frozen_later() -> None:
    moments = [Variable(8, 1), Variable(100, 8)]

    assert frozen_after_its_optimizer_was_built(_m=moments, _v=moments, other=[1, 2]) == 6400
    assert frozen_after_its_optimizer_was_built() == 0


def test_slots_are_in_the_optimizer_that_one_around_it_scales_the_loss_for() -> None:
    frozen = Embedding("words", trainable=False)
    frozen._embeddings = Variable(100, 8)
    trained = [Variable(8, 1), frozen._embeddings]
    inner = SimpleNamespace(_trainable_variables=trained, _m=[Variable(8, 1), Variable(100, 8)])
    outer = SimpleNamespace(_trainable_variables=trained, inner_optimizer=inner, variables=[])

    assert known_tables(model(frozen, optimizer=outer))[0].record.idle_slot_bytes == 3200


def test_a_table_that_no_optimizer_was_built_with_has_no_slots() -> None:
    frozen = Embedding("words", trainable=False)
    frozen._embeddings = Variable(100, 8)
    before = SimpleNamespace(_trainable_variables=[Variable(8, 1)], variables=[])

    assert known_tables(model(frozen, optimizer=before))[0].record.idle_slot_bytes == 0
    assert known_tables(model(frozen))[0].record.idle_slot_bytes is None
    trained = known_tables(model(Embedding("words"), optimizer=before))
    assert trained[0].record.idle_slot_bytes is None
