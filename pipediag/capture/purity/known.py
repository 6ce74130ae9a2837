"""What is known to leave everything outside of it as it is, by name: own choice, kept short."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from pipediag.capture.packages import HARMLESS, VALUES, package_of_module

_BUILTINS = frozenset(
    "abs all any ascii bin bool bytearray bytes chr complex dict divmod enumerate filter float "
    "format frozenset getattr hasattr hash hex int isinstance issubclass iter len list map max "
    "memoryview min object oct ord pow range repr reversed round set slice sorted str sum tuple "
    "type zip".split()
)
_CLOCKS = frozenset(
    "monotonic monotonic_ns perf_counter perf_counter_ns sleep time time_ns".split()
)
# Within those packages: what draws from a generator that others draw from too, or writes.
_NOT_THESE = (
    "dump imwrite print print_v2 save savetxt savez savez_compressed seed set_random_seed "
    "set_seed shuffle tofile write_file".split()
)
_WRITERS = ("to_", "write", "save", "set_")
_SHARED_GENERATORS = frozenset({"RandomState", "Generator", "Random", "BitGenerator"})
CHANGING = frozenset(
    "add append appendleft clear difference_update discard extend extendleft fill "
    "intersection_update insert itemset partition pop popitem popleft put remove resize reverse "
    "rotate setdefault setfield setflags sort symmetric_difference_update update write "
    "writelines".split()
)
"""Methods that change the object that they belong to, of containers, arrays and files."""
_CHANGING_OPERATORS = frozenset({"__delitem__", "__iadd__", "__imul__", "__ior__", "__setitem__"})
PLAIN = (
    *(bool, int, float, complex, str, bytes, bytearray, type(None)),
    *(list, tuple, dict, set, frozenset, range),
)
"""Types of which reading changes nothing."""


def is_harmless(function: Any) -> bool:
    """Whether a function, a class or an object that is called is known to change nothing."""
    name = str(getattr(function, "__name__", ""))
    owner = getattr(function, "__self__", None)
    module = _module_of(function)
    if type(owner).__name__ in _SHARED_GENERATORS or makes_random_operations(function):
        return False
    if name == "__getitem__" and owner is not None and not is_plain(owner):
        return False  # what hands out batches may count them, as Keras's iterators do
    if owner is not None and isinstance(owner, PLAIN):
        return name not in CHANGING and name not in _CHANGING_OPERATORS
    if module == "builtins":
        return name in _BUILTINS or _is_exception(function)
    if module == "time":
        return name in _CLOCKS
    written = name in _NOT_THESE or name.startswith(_WRITERS)
    return _is_exception(function) or (package_of_module(module) in HARMLESS and not written)


def makes_random_operations(function: Any) -> bool:
    """Whether it is one of TensorFlow's that draw from the generator that all share."""
    return _module_of(function).rpartition(".")[2] == "random_ops"


def _is_exception(function: Any) -> bool:
    return isinstance(function, type) and issubclass(function, BaseException)


def is_plain(value: Any) -> bool:
    """Whether reading from the value changes nothing: containers, numbers, arrays, tensors."""
    kind = type(value)
    return isinstance(value, (*PLAIN, ModuleType)) or (
        package_of_module(kind.__module__) in VALUES and kind.__name__ not in _SHARED_GENERATORS
    )


def _module_of(function: Any) -> str:
    module = getattr(function, "__module__", None)
    if module is None or isinstance(function, type(len)):
        # Built-in methods and ufuncs are told by what they belong to.
        owner = getattr(function, "__self__", None)
        if isinstance(owner, ModuleType):
            return owner.__name__
        module = module or type(owner if owner is not None else function).__module__
    return str(module)
