from __future__ import annotations

from typing import Any

import pytest

from pipediag.rules.embedding import sixteen_bit_lookups as rule
from pipediag.session.edits import SetModel
from pipediag.session.findings import Finding
from tests.factories import make_device, make_embedding, make_keras, make_loop, make_session
from tests.records import make_environment
from tests.rules.limits import Limit, names_of, stands
from tests.rules.sessions import only


def finding_with(
    part: float = 99.0, policy: str | None = "mixed_bfloat16", **overrides: Any
) -> Finding:
    """A table of 20 MB, and that part of the model."""
    table = make_embedding(table_bytes=overrides.pop("table_bytes", 20_000_000))
    keras = make_keras(variable_bytes=round(20_000_000 * 100 / part))
    values: dict[str, Any] = {
        "embeddings": [table],
        "loops": [make_loop(keras=keras)],
        "environment": make_environment(mixed_precision=policy),
        "devices": [],
    }
    return only(rule, make_session(**{**values, **overrides}))


def busy_with_products(percent: float) -> Finding:
    device = make_device(kind="GPU", busy_ms=80.0, matmul_ms=0.8 * percent)
    return finding_with(devices=[device])


def test_a_model_of_tables_is_told_and_tried_in_float32() -> None:
    finding = finding_with()

    assert finding.status == "informative"
    assert finding.edit is not None
    assert finding.edit.changes == (SetModel({"dtype_policy": "float32"}),)
    assert finding.effect_on_results == "same up to order or rounding"


@pytest.mark.parametrize("overrides", [{"policy": None}, {"policy": "float32"}, {"table_bytes": 9}])
def test_without_a_policy_or_a_large_table(overrides: dict[str, Any]) -> None:
    assert finding_with(**overrides).status == "not-applicable"


def test_an_accelerator_tells_of_its_products() -> None:
    assert busy_with_products(30.0).status == "pass"
    assert busy_with_products(1.0).status == "informative"


@pytest.mark.parametrize("bytes_of_model", [None, 20_000_000, 1_000_000_000])
def test_it_is_tried_whatever_part_of_the_model_the_tables_are(bytes_of_model: int | None) -> None:
    loops = [make_loop(keras=make_keras(variable_bytes=bytes_of_model))]
    finding = finding_with(loops=loops)
    assert (finding.status, finding.edit is not None) == ("informative", True)


LIMITS = [
    Limit(rule, rule.MATMUL, busy_with_products, "pass", "informative"),
    Limit(
        rule,
        rule.LARGE,
        lambda megabytes: finding_with(table_bytes=int(megabytes * 1e6), part=50.0),
        "informative",
        "not-applicable",
    ),
]


@pytest.mark.parametrize("limit", LIMITS, ids=names_of(LIMITS))
def test_a_limit(limit: Limit) -> None:
    stands(limit)
