"""What a mapped function does, by the types of its graph's operations."""

from __future__ import annotations

from pipediag.session.pipeline import Operation, OperationFunction
from pipediag.tensorflow_names import PYTHON_OPERATIONS, VARIABLES

RANDOM = frozenset(
    {
        "Multinomial",
        "ParameterizedTruncatedNormal",
        "RandomCrop",
        "RandomGamma",
        "RandomPoisson",
        "RandomPoissonV2",
        "RandomShuffle",
        "RandomStandardNormal",
        "RandomUniform",
        "RandomUniformInt",
        "RngReadAndSkip",
        "RngSkip",
        "SampleDistortedBoundingBox",
        "SampleDistortedBoundingBoxV2",
        "StatefulRandomBinomial",
        "StatefulStandardNormal",
        "StatefulStandardNormalV2",
        "StatefulTruncatedNormal",
        "StatefulUniform",
        "StatefulUniformFullInt",
        "StatefulUniformInt",
        "TruncatedNormal",
    }
)


def uses(function: OperationFunction | None, family: frozenset[str]) -> list[str]:
    """The graph operations of this family in the function, sorted."""
    return sorted(family & function.graph_ops.keys()) if function else []


def draws_random(function: OperationFunction | None) -> bool:
    """Whether two calls on one element may differ: random operations, or a seed in a variable."""
    if function is None:
        return False
    seeded = any(name.startswith("StatelessRandom") for name in function.graph_ops)
    return bool(uses(function, RANDOM)) or (seeded and bool(uses(function, VARIABLES)))


def calls_python(op: Operation) -> bool:
    """Whether elements pass through Python in this operation, not only while it is traced."""
    return bool(uses(op.function, PYTHON_OPERATIONS))
