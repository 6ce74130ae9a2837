"""Families of graph operations in a mapped function, by their TensorFlow names."""

from __future__ import annotations

from pipediag.session.pipeline import OperationFunction
from pipediag.tensorflow_names import LOOKUP, VARIABLES

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

_BOOKKEEPING = {"Arg", "Const", "Identity", "IdentityN", "NoOp", "Placeholder", "Retval"}
_ELEMENTWISE = {
    *("Abs", "Add", "AddV2", "Cast", "ClipByValue", "Cos", "Div", "DivNoNan", "Equal", "Exp"),
    *("Floor", "FloorDiv", "FloorMod", "Greater", "GreaterEqual", "Less", "LessEqual", "Log"),
    *("Log1p", "LogicalAnd", "LogicalNot", "LogicalOr", "Maximum", "Minimum", "Mod", "Mul", "Neg"),
    *("NotEqual", "OneHot", "Pow", "RealDiv", "Relu", "Rint", "Round", "Rsqrt", "Select"),
    *("SelectV2", "Sigmoid", "Sign", "Sin", "Sqrt", "Square", "SquaredDifference", "Sub", "Tanh"),
    *("TruncateDiv", "ZerosLike", "OnesLike"),
}
_STRINGS = {
    *("StringLower", "StringUpper", "StringStrip", "StringToHashBucketFast", "StringToHashBucket"),
    *("StringToNumber", "StringLength", "StaticRegexReplace", "RegexReplace", "AsString"),
    *("DecodeRaw", "StringToHashBucketStrong"),
}
BROADCASTS = frozenset(_BOOKKEEPING | _ELEMENTWISE | _STRINGS | LOOKUP)
"""Give the same values for a batch as for its rows one by one."""
BATCH_FORMS = {
    "ParseExampleV2": "tf.io.parse_example",
    "ParseSingleExample": "tf.io.parse_example",
    "StringSplitV2": "tf.strings.split(...).to_tensor()",
}
"""Per-row operations that have a form for batches, and how that is written."""
REWRITTEN = frozenset({"ParseExampleV2"})
"""Those of them that a trial traces in that form by itself."""


def uses(function: OperationFunction | None, family: frozenset[str]) -> list[str]:
    """The graph operations of this family in the function, sorted."""
    return sorted(family & function.graph_ops.keys()) if function else []


def draws_random(function: OperationFunction | None) -> bool:
    """Whether two calls on one element may differ: random operations, or a seed in a variable."""
    if function is None:
        return False
    seeded = any(name.startswith("StatelessRandom") for name in function.graph_ops)
    return bool(uses(function, RANDOM)) or (seeded and bool(uses(function, VARIABLES)))
