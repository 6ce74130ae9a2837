"""Lines and functions of the user, whose line is that of the innermost frame of no library."""

from __future__ import annotations

import ast
import functools
import gc
import inspect
import linecache
import os
import sys
import threading
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from dis import get_instructions
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from types import CellType, CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

KERAS = frozenset({"keras", "tf_keras"})

FRAMEWORKS = KERAS | {"tensorflow", "jax", "jaxlib"}
"""Packages whose lines take TensorFlow's, Keras's or JAX's time, not that of a user's line."""

ON_BEHALF = KERAS | frozenset(
    "keras_core keras_cv keras_hub keras_nlp keras_tuner autokeras "
    "tensorflow_addons tensorflow_datasets tensorflow_decision_forests tensorflow_hub "
    "tensorflow_io tensorflow_probability tensorflow_ranking tensorflow_recommenders "
    "tensorflow_text tensorflow_transform tf_agents torch torchvision lightning pytorch_lightning "
    "accelerate datasets transformers flax optax numpy pandas scipy sklearn "
    "alive_progress fastprogress more_itertools rich toolz tqdm "
    "IPython etils ipykernel tree wrapt".split()
)
"""Packages that make or consume a pipeline for the line that calls them. Others may be the user's
own."""


def package_of_module(module: str) -> str:
    """Return the top-level package of a module's dotted name."""
    return module.partition(".")[0]


def is_keras_class(kind: type, names: Container[str]) -> bool:
    """Return True for a class of Keras's of one of these names, and not for one of the script's."""
    return kind.__name__ in names and package_of_module(kind.__module__) in KERAS


_PIPEDIAG = f"{Path(__file__).resolve().parent.parent}{os.sep}"
_STANDARD_LIBRARY = str(Path(threading.__file__).parent)
# AutoGraph writes the converted source of a user's function to a file with this in its name.
AUTOGRAPH_FILE = "__autograph_generated_file"
_CELL = "<ipython-input-"
"""Begin of IPython 7's name for a cell of a notebook, which is in no file."""


@dataclass(frozen=True)
class CallSite:
    """A line of user code; `by_framework` says that Keras or the like called on its behalf."""

    file: str
    line: int
    function: str
    by_framework: bool


@lru_cache(maxsize=4096)
def package_of(filename: str) -> str | None:
    """Return the top-level package of an installed file; None for code that nobody installed."""
    parts = Path(filename).parts
    for marker in ("site-packages", "dist-packages"):
        if marker in parts[:-1]:
            return parts[parts.index(marker) + 1].removesuffix(".py")
    if filename.startswith(_STANDARD_LIBRARY):
        return None
    for root in sys.path[1:]:  # the first is the script's own
        if root and filename.startswith(root) and Path(filename).is_relative_to(root):
            # As `pip --target` fills one.
            name = Path(filename).relative_to(root).parts[0].removesuffix(".py")
            if name in _installed_in(root):
                return name
    return None


@lru_cache(maxsize=64)
def _installed_in(root: str) -> frozenset[str]:
    """Return the top-level names that an installer's records list for a directory."""
    paths: list[str] = []
    with suppress(OSError):
        for record in Path(root).glob("*.dist-info/RECORD"):
            text = record.read_text(encoding="utf-8", errors="replace")
            paths += [line.partition(",")[0] for line in text.splitlines()]
    return frozenset(path.partition("/")[0].removesuffix(".py") for path in paths)


@lru_cache(maxsize=4096)
def is_pipediags(filename: str) -> bool:
    """Return True if the file is one of pipediag's own."""
    return filename.startswith(_PIPEDIAG)


@lru_cache(maxsize=4096)
def is_users(filename: str) -> bool:
    """Return True if code of that file is the user's, not a library's, Python's or pipediag's."""
    if filename.startswith(_CELL):
        return True
    if filename.startswith("<") or is_pipediags(filename) or AUTOGRAPH_FILE in filename:
        return False
    package = package_of(filename)
    if package is None:
        return not filename.startswith(_STANDARD_LIBRARY)
    return package not in FRAMEWORKS and package not in ON_BEHALF


def frames(innermost: FrameType | None = None) -> Iterator[FrameType]:
    """Iterate over the caller's frames, or those from the innermost on, without pipediag's own."""
    frame: FrameType | None = innermost or sys._getframe(1)
    while frame is not None:
        if not is_pipediags(frame.f_code.co_filename):
            yield frame
        frame = frame.f_back


# A thread that computes for less than Python's switch interval (5 ms) would never be caught at it.
# Calls of a `py_function` are often shorter than 50 us.
_SWITCH_INTERVAL_S = 0.00001


_WALKING_S = 1.0
"""Longer than any walk over frames takes, also where the machine runs other programs meanwhile."""


class _SwitchInterval:
    """Python's switch interval, which is the script's: shortened for a while, and restored."""

    def __init__(self) -> None:
        self._shortened = False
        self._own_s: float | None = None

    def shorten(self) -> None:
        self._own_s, self._shortened = sys.getswitchinterval(), True
        sys.setswitchinterval(_SWITCH_INTERVAL_S)

    def restore(self) -> None:
        """Restore the script's own, also in a child that is forked meanwhile."""
        if self._shortened and self._own_s is not None:
            self._shortened = False
            sys.setswitchinterval(self._own_s)

    @contextmanager
    def lengthened(self) -> Iterator[None]:
        """Let no other thread run meanwhile, unless this one waits: their frames must not go on
        while they are walked. Python 3.11.7 crashed then, in 3 of 16 runs; with its own 5 ms, in 2
        of 20 jobs of four processes on two CPUs, where the system interrupts the walk.
        """
        before_s = sys.getswitchinterval()
        sys.setswitchinterval(_WALKING_S)
        try:
            yield
        finally:
            # Another thread may have shortened it, or restored it, just before this one did.
            if self._shortened:
                before_s = _SWITCH_INTERVAL_S
            elif self._own_s is not None and before_s < 2 * _SWITCH_INTERVAL_S:
                before_s = self._own_s
            sys.setswitchinterval(before_s)


SWITCH_INTERVAL = _SwitchInterval()


@contextmanager
def walking() -> Iterator[None]:
    """Let the frames of other threads stand still, to be walked.

    An attribute of a frame may make another frame, and what is made may start a collection of
    garbage: before Python 3.12 at once, since then a little later. Its destructors let other
    threads run, while the interpreter is in the middle of their frames (a crash), or holds its list
    of threads (for ever, where the garbage has a `threading.local`:
    https://github.com/python/cpython/issues/106883). And with a lengthened switch interval, each
    destructor that gives up the GIL waits for it up to a second.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        with SWITCH_INTERVAL.lengthened():
            yield
    finally:
        if collects:
            gc.enable()


Stack = list[tuple[CodeType, int]]
"""Code and line of each frame of a thread, the innermost first."""


def stacks(threads: Container[int] | None = None) -> dict[int, Stack]:
    """Return the stacks of these threads, or of all, by the threads' identities.

    No frame is kept, and nothing else is done while other threads wait: a file that is looked at
    lets them run.
    """
    with walking():
        return _walked(threads)


def _walked(threads: Container[int] | None) -> dict[int, Stack]:
    found: dict[int, Stack] = {}
    for ident, innermost in sys._current_frames().items():
        if threads is None or ident in threads:
            found[ident] = stack = []
            frame: FrameType | None = innermost
            while frame is not None:
                # A frame between two lines has none.
                stack.append((frame.f_code, frame.f_lineno or frame.f_code.co_firstlineno))
                frame = frame.f_back
    return found


def consuming_frames() -> Iterator[FrameType]:
    """Iterate over the caller's frames from that of the loop that takes what is made now.

    Generators of the script's own that hand it on, as one that shows progress, are left out.
    """
    handed_on = True
    for frame in frames():
        users = is_users(frame.f_code.co_filename)
        if handed_on and users and hands_on(frame):
            continue
        handed_on = handed_on and not users
        yield frame


def hands_on(frame: FrameType) -> bool:
    """Return True for a generator function that a line of the script's goes through."""
    code, back = frame.f_code, frame.f_back
    generates = code.co_flags & inspect.CO_GENERATOR and code.co_name != "<genexpr>"
    return bool(generates) and back is not None and is_users(back.f_code.co_filename)


def wraps_its_data(stack: Iterable[FrameType]) -> bool:
    """Return True if a library between TensorFlow and the user's line goes through the data, as
    `tfds.as_numpy` does; tqdm takes its argument as it is."""
    files = (frame.f_code.co_filename for frame in stack)
    libraries = map(package_of, takewhile(lambda file: not is_users(file), files))
    return any(one is not None and one not in (*FRAMEWORKS, "tqdm") for one in libraries)


def call_site(stack: Iterable[FrameType] | None = None) -> CallSite | None:
    """Return the user's line that the current call is made for; None where there is none."""
    by_framework = False
    for frame in frames() if stack is None else stack:
        filename = frame.f_code.co_filename
        if is_users(filename):
            return CallSite(filename, frame.f_lineno, frame.f_code.co_name, by_framework)
        by_framework = by_framework or package_of(filename) in ON_BEHALF
    return None


_REFERENCES = 3
"""References to what `f_locals` gave: the frame's, a variable of ours, and the argument."""


def locals_of(frame: FrameType) -> dict[str, Any]:
    """Return a copy of the frame's variables.

    Before Python 3.13 a frame keeps what `f_locals` gave until it is asked again or ends. So it is
    emptied: otherwise an iterator that a frame had in a variable would outlive its epoch, and its
    pipeline go at another moment than natively, which takes up to half a second.
    """
    shown = frame.f_locals
    found = dict(shown)
    # Whoever called `locals()` holds it, too.
    ours = sys.getrefcount(shown) <= _REFERENCES
    if ours and isinstance(shown, dict) and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
        shown.clear()
    return found


def function_of(frame: FrameType) -> Callable[..., Any]:
    """Return the function that a frame runs, with its object if it is a method of its class."""
    code, values = frame.f_code, locals_of(frame)
    # Names that it closes over may have no value yet.
    cells = (CellType(*(values[name],) if name in values else ()) for name in code.co_freevars)
    function = FunctionType(code, frame.f_globals, code.co_name, None, tuple(cells))
    owner = values.get(code.co_varnames[0]) if code.co_argcount else None
    method = inspect.getattr_static(type(owner), code.co_name, None)
    is_method = getattr(unwrap(method), "__code__", None) is code
    return MethodType(function, owner) if is_method else function


@lru_cache(maxsize=64)
def parsed(file: str) -> ast.Module | None:
    """Return the syntax tree of a file; None where there is no source, or none of Python's."""
    source = "".join(linecache.getlines(file))
    try:
        return ast.parse(source) if source else None
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def script_files() -> list[str]:
    """Return the files of the script's modules."""
    modules = [one for one in [*sys.modules.values()] if isinstance(one, ModuleType)]
    files = {str(vars(one).get("__file__")) for one in modules}
    own = (one for one in files if one.endswith(".py") and package_of(one) is None)
    return [one for one in own if is_users(one)]


def is_in_a_loop(code: CodeType, at: int) -> bool:
    """Return True if code jumps back over an instruction."""
    return any(
        "JUMP" in one.opname and isinstance(one.argval, int) and one.argval <= at < one.offset
        for one in get_instructions(code)
    )


Stacked = list[tuple[CodeType, int]]
"""Code and line of the script's own frames, the outermost first."""


def users_stack() -> Stacked:
    """Return the frames of the script's own code that run now."""
    found = [(one.f_code, one.f_lineno) for one in frames() if is_users(one.f_code.co_filename)]
    return found[::-1]


@lru_cache(maxsize=64)
def _loops_of(file: str) -> list[tuple[int, int]] | None:
    """Return the first and the last line of each loop of a file; None where it can't be read."""
    tree = parsed(file)
    if tree is None:
        return None
    loops = ast.For | ast.AsyncFor | ast.While
    loops |= ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
    found = (one for one in ast.walk(tree) if isinstance(one, loops))
    return [(one.lineno, one.end_lineno or one.lineno) for one in found]


def may_come_back(stack: Stacked, here: Stacked) -> bool:
    """Return True if a loop that was running at the one moment may still run at the other: a frame
    that is in both has it around both of its lines."""
    for (code, line), (other, line_here) in zip(stack, here, strict=False):
        if code is not other:
            break
        loops = _loops_of(code.co_filename)
        first, last = sorted((line, line_here))
        if loops is None or any(
            begin <= first and last <= end and begin >= code.co_firstlineno for begin, end in loops
        ):
            return True
        if line != line_here:
            break  # frames further in are those of other calls
    return False


def unwrap(function: Any) -> Any:
    """Return the plain function behind partials, decorators, methods and callable objects."""
    for _ in range(20):
        if isinstance(function, functools.partial):
            function = function.func
        elif hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif hasattr(function, "__func__"):
            function = function.__func__
        elif hasattr(function, "python_function"):
            function = function.python_function
        elif not hasattr(function, "__code__") and callable(function):
            called = getattr(type(function), "__call__", None)  # noqa: B004 - its code is wanted
            return called if hasattr(called, "__code__") else function
        else:
            break
    return function


def name_of(code: CodeType) -> str:
    """Return the qualified name of a function's code, which Python 3.10 does not keep."""
    return getattr(code, "co_qualname", code.co_name)


class ScriptLine(NamedTuple):
    """The innermost line of the script's own code on a stack."""

    file: str
    line: int
    function: str
    function_line: int
    importing: bool
    in_framework: bool
    """True if a framework's code runs for it."""


def script_line_of(stack: Stack | None) -> ScriptLine | None:
    """Return the innermost line of the script's own code; None where a stack has none."""
    importing = in_framework = False
    for code, line in stack or ():
        package = package_of(code.co_filename)
        if package in FRAMEWORKS:
            in_framework = True
        elif code.co_filename == "<frozen importlib._bootstrap>":
            importing = True
        elif package is None and is_users(code.co_filename):
            place = (code.co_filename, line, name_of(code), code.co_firstlineno)
            return ScriptLine(*place, importing, in_framework)
    return None


def source_location(function: Callable[..., Any]) -> str:
    """Return `file:line name` of a Python function, as the recording names functions."""
    plain = unwrap(function)
    code = getattr(plain, "__code__", None)
    name = getattr(plain, "__qualname__", repr(plain))
    return f"{code.co_filename}:{code.co_firstlineno} {name}" if code else name


def defined_at(function: Any) -> CallSite | None:
    """Return where a user's function is defined; None for one of a library's."""
    code = getattr(unwrap(function), "__code__", None)
    if code is None or not is_users(code.co_filename):
        return None
    return CallSite(code.co_filename, code.co_firstlineno, code.co_name, by_framework=False)


def place_of(function: Any) -> tuple[str, CallSite | None]:
    """Name and place of the user's function, or of the user's call where it is a framework's."""
    plain = unwrap(function)
    own_name = getattr(plain, "__qualname__", None)
    # An object that is called in a function's place may have attributes of any kind.
    qualified = own_name if isinstance(own_name, str) else type(plain).__name__
    return qualified.rpartition("<locals>.")[2], defined_at(plain) or call_site()
