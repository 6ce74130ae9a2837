"""Which lines of standard error are the framework's own log, with nothing in them to act on.

TensorFlow, XLA and JAX write it in C++, with one of two heads: that of TensorFlow's own logging,
and that of Abseil's before it is initialised, which they do not do. Python's loggers and tools with
a log of their own write neither.
"""

from __future__ import annotations

import re

_HEAD = re.compile(
    rb"(?:\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}: (?P<level>[IWEF]) "
    rb"|(?P<absl_level>[IWEF])0000 00:00:\d+\.\d{6} +\d+ )"
    rb"(?:[^\s:\]]*/)?(?P<file>[^\s:/\]]+\.(?:cc|cpp|cu|h|hpp|inc)):\d+\]"
)
_SHAPE = b"0000-00-00 00:00:00.000000: "
"""How the first head begins, with 0 for any digit."""
_ABSL = b"I0000 00:00:"
"""How the second one does, with I for any level."""
_AS_SHAPE = bytes.maketrans(b"123456789", b"000000000")
_AS_LEVEL = bytes.maketrans(b"WEF", b"III")
_INTRODUCTION = (
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR"
)
_CONTINUATIONS = (
    b"To enable the following instructions: ",
    b"Skipping registering GPU devices...",
    b"\t [[",
)
"""How the second lines begin of messages that have several; the last names an operation."""
_MEANT_TO_BE_READ = frozenset({b"logging_ops.cc", b"placer.cc", b"execute.cc", b"op_kernel.cc"})
"""`tf.print` into the log, device placement that somebody has switched on, and operations that
failed, of which a script may show no other trace."""
_FAILED = re.compile(
    rb"\b(?:UNKNOWN|INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|ALREADY_EXISTS|PERMISSION_DENIED"
    rb"|UNAUTHENTICATED|RESOURCE_EXHAUSTED|FAILED_PRECONDITION|ABORTED|UNIMPLEMENTED|INTERNAL"
    rb"|UNAVAILABLE|DATA_LOSS): "
)
"""A status that is no end of a dataset and no stop; a traceback of many lines may follow it."""
_NOISE = re.compile(
    rb"cuda_(?:dnn|fft|blas)\.cc:\d+\] Unable to register cu\w+ factory: "
    rb"|computation_placer\.cc:\d+\] computation placer already registered"
    rb"|cuda_\w+\.cc:\d+\] failed call to cuInit: .*(?:303|CUDA_ERROR_NO_DEVICE)"
    rb"|cuda_executor\.cc:\d+\] .*cudaGetRuntimeVersion: Error loading CUDA libraries"
)
"""What is logged as an error wherever TensorFlow is imported: two copies of a registry in it, and
no driver or no GPU on the machine. Other failures of a GPU are none of these."""


def folds(line: bytes, after_folded: bool = False) -> bool:
    """Whether a line is one to fold. `after_folded`: the line before it was one."""
    head = _HEAD.match(line)
    if head is None:
        return line.rstrip() == _INTRODUCTION or (after_folded and line.startswith(_CONTINUATIONS))
    level = head["level"] or head["absl_level"]
    if level in b"IW":
        return head["file"] not in _MEANT_TO_BE_READ and not _FAILED.search(line, head.end())
    return level == b"E" and _NOISE.match(line, head.start("file")) is not None


def may_begin(start: bytes, after_folded: bool = False) -> bool:
    """Whether a line that begins so may turn out to be one to fold."""
    return (
        _agree(start.translate(_AS_SHAPE), _SHAPE)
        or _agree(start[:1].translate(_AS_LEVEL) + start[1:], _ABSL)
        or _agree(start, _INTRODUCTION)
        or (after_folded and any(_agree(start, known) for known in _CONTINUATIONS))
    )


def behind(line: bytes, bar_until: int) -> int:
    """Where a line to fold begins that was written behind a progress bar; -1 for nowhere."""
    head = _HEAD.search(line, bar_until)
    return head.start() if head is not None and folds(line[head.start() :]) else -1


def _agree(start: bytes, whole: bytes) -> bool:
    return whole.startswith(start[: len(whole)])
