"""Graph operations that do for a batch what they do for each of its rows."""

from __future__ import annotations

from pipediag.tensorflow_names import LOOKUP

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
