"""One tf.data call as it was made: its line, its parameters, and what makes it again."""

from __future__ import annotations

import functools
import inspect
import os
import zlib
from collections.abc import Callable, Iterable
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipediag.capture.callsites import AUTOGRAPH_FILE, CallSite, call_site, frames, is_users
from pipediag.session.recording import RecordedOperation
from pipediag.vocabulary import Scalar


def user_site() -> CallSite | None:
    """Return the user's line on the stack of this thread; None where there is none.

    In a function that AutoGraph converted, TensorFlow's source map says which line it was.
    """
    if not any(AUTOGRAPH_FILE in frame.f_code.co_filename for frame in frames()):
        return call_site()
    from tensorflow.python.util import tf_stack

    for frame in reversed(tf_stack.extract_stack()):
        if is_users(frame.filename):
            return CallSite(frame.filename, frame.lineno, frame.name, by_framework=False)
    return call_site()


MOST_FILES = 1000
"""Looking at each takes a tenth of a millisecond on a disk, and more over a network."""
_SAMPLE = 64 * 1024
"""Bytes of a packed file that are unpacked, in about a millisecond."""


def uncompressed_bytes(filenames: Any, compression: object) -> int | None:
    """Return the bytes in local files; None where these do not tell."""
    names = [filenames] if isinstance(filenames, str | bytes | os.PathLike) else filenames
    known = compression is None or (isinstance(compression, str) and compression in ("", "GZIP"))
    if not known or not isinstance(names, list | tuple) or len(names) > MOST_FILES:
        return None
    try:
        if not compression:
            return sum(map(os.path.getsize, names))
        ratio = _ratio_of_gzip(names[0]) if names else 1.0
        return sum(_unpacked_bytes(name, ratio) for name in names)
    except (OSError, TypeError, ValueError, zlib.error):
        return None


def _ratio_of_gzip(path: str) -> float:
    """Return how many bytes one of a file of gzip makes at its begin. Raises zlib.error: it is no
    such file."""
    with open(path, "rb") as file:  # noqa: PTH123
        packed = file.read(_SAMPLE)
    begin = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    made = len(begin.decompress(packed))
    return made / max(1, len(packed) - len(begin.unused_data))


def _unpacked_bytes(path: str, ratio: float) -> int:
    """Return what a file of gzip says in its last four bytes, modulo 2 ** 32 (RFC 1952, 2.3.1).

    Raises ValueError for one that may hold more, by the ratio: it is large, or several in one.
    """
    with open(path, "rb") as file:  # noqa: PTH123
        packed = file.seek(-4, os.SEEK_END) + 4
        size = int.from_bytes(file.read(4), "little")
    if not ratio * packed / 2 <= size or 2 * ratio * packed >= 2**32:
        raise ValueError(path)
    return size


def _interleave_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of `interleave` for the older class, which reads from all at once."""
    cycle_length, sloppy = given["cycle_length"], given["sloppy"]
    return {
        "cycle_length": cycle_length,
        "block_length": given["block_length"],
        "num_parallel_calls": cycle_length,
        "deterministic": None if sloppy is None else not sloppy,
    }


_PUBLIC_FORMS: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]]]] = {
    "_MapDataset": ("map", lambda _: {}),
    "ParallelInterleaveDataset": ("interleave", _interleave_of),
}
"""Names of classes of TensorFlow's own: the method of datasets that makes the same, and its
options."""


def as_public_call(
    dataset_class: type, maker: type, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]:
    """Return the call of the class `maker` as one of a public method, where there is one."""
    if maker.__name__ not in _PUBLIC_FORMS:
        return maker, args, kwargs
    method, options_of = _PUBLIC_FORMS[maker.__name__]
    bound = inspect.signature(maker).bind(*args, **kwargs)
    bound.apply_defaults()
    given, function = bound.arguments, dataset_class.__dict__[method]
    options = {"map_func": given["map_func"], **options_of(given), "name": kwargs.get("name")}
    return getattr(function, "__wrapped__", function), (given["input_dataset"],), options


_PARAMETERS = frozenset(
    "num_parallel_calls deterministic buffer_size batch_size drop_remainder count cycle_length "
    "block_length reshuffle_each_iteration num_parallel_reads compression_type filename path "
    "use_unbounded_threadpool seed num_shards index size shift shuffle stride "
    "pad_to_bucket_boundary".split()
)

_FILES = frozenset({"filenames", "file_pattern", "tensors"})
"""Parameters that name files; tensors may, for a function that reads them."""


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def name_given(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[str | None, bool]:
    """Return the `name` of a call, and True if it can be given another one as a keyword."""
    parameters = _signature(function).parameters.values()
    in_place = [p.name for p in parameters if p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    if "name" in in_place[: len(args)]:
        return args[in_place.index("name")], False
    takes = any(p.name == "name" or p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters)
    return kwargs.get("name"), takes


def parameters_of(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> dict[str, Scalar]:
    """Return the given parameters that the recording keeps."""
    given = _signature(function).bind(*args, **kwargs).arguments
    parameters = {name: _plain(given[name]) for name in sorted(_PARAMETERS.intersection(given))}
    if "filenames" in given:
        parameters["file_count"] = _length(given["filenames"])
        size = uncompressed_bytes(given["filenames"], given.get("compression_type"))
        if size is not None:
            parameters["file_bytes"] = size
    for name in _FILES.intersection(given):
        storage = remote_storage_of(given[name])
        if storage is not None:
            parameters["remote_storage"] = storage
    return parameters


def _plain(value: Any) -> Scalar:
    if value is None or isinstance(value, bool | int | float | str):
        return value
    for convert in (int, str):
        try:
            return convert(value)
        except (TypeError, ValueError):
            continue
    return None


def _length(filenames: Any) -> int | None:
    if isinstance(filenames, str | bytes) or getattr(filenames, "shape", None) == ():
        return 1
    try:
        return len(filenames)
    except TypeError:
        return None


# The remote storage on which the files of a pipeline lie.

_MOUNTS = "/proc/self/mounts"
_NETWORK = ("nfs", "cifs", "smb", "9p", "ceph", "lustre", "gpfs", "beegfs", "afs", "fuse")
"""Beginnings of types of file systems that fetch what they give from elsewhere."""
_LOCAL = ("fuseblk", "fuse.mergerfs", "fuse.ntfs", "fuse.ntfs-3g", "fusectl", "fuse.overlayfs")
"""Types that begin so too and read a disk of the machine."""


def remote_storage_of(files: Any) -> str | None:
    """Return the remote storage of the first of these files: a scheme such as `gs://`, or the type
    of its mount, such as `nfs4`; None for local files, and for what names no files."""
    name = _first_name(files)
    if name is None:
        return None
    scheme, separator, _ = name.partition("://")
    if separator:
        return f"{scheme}://" if scheme.isalnum() and scheme != "file" else None
    with suppress(OSError, ValueError):
        # A pattern's directory stands for the files that match it.
        first = min((name.find(mark) for mark in "*?[" if mark in name), default=None)
        place = name if first is None else os.path.dirname(name[:first]) or "."  # noqa: PTH120
        if os.path.exists(place):  # noqa: PTH110  (text that is no path may be anything)
            mounts = Path(_MOUNTS).read_text(encoding="utf-8", errors="surrogateescape")
            kind = mount_type(os.path.realpath(place), mounts.splitlines())
            return kind if kind.startswith(_NETWORK) and kind not in _LOCAL else None
    return None


def mount_type(path: str, mounts: Iterable[str]) -> str:
    """Return the file system of an absolute path, by the lines of /proc/self/mounts; the last of
    the longest mount points counts. Empty where none has it."""
    longest, kind = -1, ""
    for line in mounts:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = fields[1]
        for escaped in ("\\040", "\\011", "\\012", "\\134"):
            point = point.replace(escaped, chr(int(escaped[1:], 8)))
        point = point.rstrip("/")
        if (path == point or path.startswith(f"{point}/")) and len(point) >= longest:
            longest, kind = len(point), fields[2]
    return kind


def _first_name(files: Any, depth: int = 2) -> str | None:
    """Return the first of some names, which may stand with labels; symbolic ones are not known."""
    if isinstance(files, str | bytes | os.PathLike):
        return os.fsdecode(files)
    array = getattr(getattr(files, "dtype", None), "kind", None) in ("O", "S", "U")
    if depth and (array or isinstance(files, list | tuple)):
        with suppress(TypeError, StopIteration):
            return _first_name(next(iter(files)), depth - 1)
    return None


def cardinality_of(dataset: Any) -> int | None:
    """Return the elements in one pass, -1 where there is no end; None where it is not known."""
    from tensorflow.python.eager import context

    if not context.executing_eagerly():
        return None
    count = int(dataset.cardinality())
    return None if count == -2 else count


def element_bytes_of(dataset: Any) -> int | None:
    """Return the bytes of one element; None where its shapes are not static."""
    from tensorflow.python.data.util import structure

    total = 0
    shapes = structure.get_flat_tensor_shapes(dataset.element_spec)
    types = structure.get_flat_tensor_types(dataset.element_spec)
    for shape, dtype in zip(shapes, types, strict=True):
        if not shape.is_fully_defined() or dtype.name in ("string", "variant", "resource"):
            return None
        total += shape.num_elements() * dtype.size
    return total


MARK = "_pipediag_op"
"""Attribute in which a dataset carries the id of the operation that made it."""
_CALL = "_pipediag_call"

DATA_SOURCES = frozenset({"from_tensors", "from_tensor_slices", "from_list", "from_generator"})
"""Calls whose arguments may be the user's whole data, or state that a second call would upset."""


@dataclass(frozen=True, eq=False)
class Call:
    """A recorded call: the function and its arguments. Of a data source these are a generator and
    what that is called with."""

    operation: RecordedOperation
    function: Callable[..., Any]
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    inside: tuple[RecordedOperation, ...] = ()
    """Operations that its function made, in their order."""

    @property
    def repeatable(self) -> bool:
        return self.operation.kind not in DATA_SOURCES

    @property
    def generator(self) -> Any:
        return self.args[0] if self.operation.kind == "from_generator" and self.args else None


def remember(
    dataset: Any,
    operation: RecordedOperation,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    inside: tuple[RecordedOperation, ...],
) -> None:
    """Keep a call on the dataset that it returned; of a data source only the generator, with its
    arguments."""
    if getattr(dataset, "__dict__", {}).get(MARK) != operation.id:
        return  # an identity: another call had made what this one returned
    if operation.kind == "from_generator":
        given = _signature(function).bind(*args, **kwargs).arguments
        args, kwargs = (given["generator"], *(given.get("args") or ())), {}
    elif operation.kind in DATA_SOURCES:
        args, kwargs = (), {}
    names = getattr(dataset, "_filenames", None)
    if isinstance(function, type) and hasattr(names, "element_spec"):
        # A reader's names of files, in place of the script's list: it may be long, and may change.
        args = (names, *args[1:]) if args else ()
        kwargs = kwargs if args else {**kwargs, "filenames": names}
    # Not by setattr, for a dataset tracks its attributes as checkpointable.
    dataset.__dict__[_CALL] = Call(operation, function, args, kwargs, inside)


def forget(dataset: Any) -> None:
    """Take away what recording has left on a dataset: another recording would misread it."""
    for key in (MARK, _CALL):
        dataset.__dict__.pop(key, None)


def call_of(dataset: Any) -> Call | None:
    """Return the call that made this dataset, or None where that was not recorded."""
    call: Call | None = dataset.__dict__.get(_CALL)
    return call


InnerCall = Callable[[str, Callable[..., Any], tuple[Any, ...], dict[str, Any]], Any]
"""Makes a call of a user's function, of that kind, while an outer call is made again."""


replaying: ContextVar[InnerCall | None] = ContextVar("replaying", default=None)
"""Set while calls are made again, in that thread alone: nothing is recorded then."""
