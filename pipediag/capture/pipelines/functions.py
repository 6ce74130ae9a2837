"""The function given to a tf.data operation: its Python, what that changes, and its graph."""

from __future__ import annotations

import ast
import builtins
import dis
import inspect
import io
import sys
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import partial
from textwrap import dedent
from types import CodeType, FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

from pipediag.capture.callsites import is_users, source_location, unwrap
from pipediag.capture.pipelines.later_code import CHANGING
from pipediag.capture.pipelines.values import (
    CONTAINERS,
    UNKNOWN,
    closure_of,
    handed_on,
    set_again,
    value_of,
)
from pipediag.session.recording import RecordedFunction, RowOperation
from pipediag.step_source import called_name, reads_on
from pipediag.tensorflow_names import (
    BROADCASTING,
    PARSING,
    PYTHON_OPERATIONS,
    REDUCING,
    ROW_FUNCTIONS,
)

_NAMES = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"})
_ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_BETWEEN = frozenset({"EXTENDED_ARG", "PUSH_NULL"})


def module_functions(function: Callable[..., Any]) -> list[str]:
    """Return the full names of builtins and modules' functions in its code, sorted.

    `time.sleep`, or `print` for a builtin. A name counts for what it is bound to: an attribute of
    an element, or a function of the script that is called `print`, is none of them. Functions that
    this one calls are not looked into.
    """
    code = getattr(function, "__code__", None)
    if code is None:
        return []
    known = {**vars(builtins), **getattr(function, "__globals__", {}), **closure_of(function)}
    return sorted(set(_functions_named_in(code, known)))


def _functions_named_in(code: CodeType, known: Mapping[str, Any]) -> Iterator[str]:
    known = {name: known[name] for name in known.keys() - {*code.co_varnames, *code.co_cellvars}}
    module, value = None, UNKNOWN
    for instruction in dis.get_instructions(code):
        if instruction.opname in _BETWEEN:
            continue
        if instruction.opname in _ATTRIBUTES and isinstance(value, ModuleType):
            module, value = value.__name__, vars(value).get(instruction.argval, UNKNOWN)
            continue
        if callable(value) and not isinstance(value, type):
            name = getattr(value, "__name__", "")
            owner = type(getattr(value, "__self__", None)).__module__
            place = module or getattr(value, "__module__", None) or owner
            yield name if getattr(builtins, name, None) is value else f"{place}.{name}"
        named = instruction.opname in _NAMES
        module, value = None, known.get(instruction.argval, UNKNOWN) if named else UNKNOWN
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _functions_named_in(constant, known)


_WRITING = frozenset("write writelines writerow writerows".split())
_FILES = frozenset(
    "makedirs mkdir rename rmtree savez to_csv to_parquet tofile unlink write_bytes "
    "write_text".split()
)
_WRITE_MODES = frozenset("wax+")
_NOTHING: Mapping[str, Any] = MappingProxyType({})


def side_effect(
    function: Callable[..., Any], handed_on: Container[str] = frozenset()
) -> str | None:
    """Return what it changes, as in "it changes `seen`"; None where nothing shows.

    Attributes that are `handed_on` may be set, if they are of its own object.
    """
    function = _with_owner(function)
    plain = inspect.unwrap(getattr(function, "__func__", function))
    tree = _tree_of(plain)
    definition = tree.body[0] if tree is not None and len(tree.body) == 1 else None
    if not isinstance(definition, ast.FunctionDef):
        return None
    outside = _Outside(definition, plain, getattr(function, "__self__", None), handed_on)
    return next(outside.changes(), None)


def _tree_of(function: Any) -> ast.Module | None:
    """Return the syntax tree of a function's source; None where there is none, or only a part."""
    try:
        return ast.parse(dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError, ValueError):
        return None


def _with_owner(function: Any) -> Any:
    """Return the function, or the method with its object, that a partial or an object calls."""
    while isinstance(function, partial):
        function = function.func
    if any(hasattr(function, name) for name in ("__code__", "__func__", "__wrapped__")):
        return function
    call = getattr(type(function), "__call__", None)  # noqa: B004 - its code is wanted
    return MethodType(call, function) if isinstance(call, FunctionType) else function


_BEYOND = (
    "Write", "Collective", "Horovod", "Nccl", "Iterator", "LookupTableI", "Queue", "Barrier",
    "PrintV2", "PyFunc", "EagerPyFunc",
)  # fmt: skip
"""Begins of names of operations whose effects reach beyond the variables: they print, write, read
on, call Python or wait for other processes."""
_BY_CHANCE = ("numpy.random.", "random.", "secrets.", "time.")


_ON_HOST = ("print", "next", "input")


def changes_of(function: Callable[..., Any]) -> str | None:
    """Return what a function, or what it calls of the script's, changes, draws or prints."""
    followed = [*_followed(function)]
    passing = handed_on(followed)
    for one in followed:
        changed = side_effect(one, passing)
        if changed is not None:
            return changed
        plain = getattr(one, "__func__", one)
        named = module_functions(plain)
        if "next" in named and not _reads_on(_tree_of(plain)):
            named.remove("next")
        by_chance = [name for name in named if name in _ON_HOST or name.startswith(_BY_CHANCE)]
        if by_chance:
            return f"it calls `{by_chance[0]}`"
        drawn = random_state_of(one, only_read=True)
        if drawn is not None:
            return drawn
    return None


def _reads_on(tree: ast.Module | None) -> bool:
    """Return True if code reads an iterator with `next` that it does not make there."""
    calls = [one for one in ast.walk(tree) if isinstance(one, ast.Call)] if tree is not None else []
    named = [one for one in calls if called_name(one) == "next"]
    return not named or any(map(reads_on, named))


def _asks_for_a_value(tree: ast.Module | None) -> bool:
    """Return True if a function calls `.numpy()` itself, and not an inner one, which TensorFlow may
    call with tensors that have values."""
    waiting: list[ast.AST] = [*ast.iter_child_nodes(tree.body[0])] if tree and tree.body else []
    while waiting:
        match waiting.pop():
            case ast.Call(func=ast.Attribute(attr="numpy"), args=[], keywords=[]):
                return True
            case ast.FunctionDef() | ast.Lambda():
                pass
            case node:
                waiting += ast.iter_child_nodes(node)
    return False


def why_not_traced(function: Callable[..., Any], loop: tuple[str, int] | None = None) -> str | None:
    """Return why a trace of a function would not do what each of its calls does, if so.

    For a function that is made of a step, `loop` is the file and the line of the loop around it.
    """
    changed = changes_of(function)
    if changed is not None:
        return f"Its Python would run only while it is traced, and {changed}."
    followed = [*_followed(function)]
    if any(_asks_for_a_value(_tree_of(getattr(one, "__func__", one))) for one in followed):
        return "It asks for a value in Python by `.numpy()`."
    kept = set_again(followed, loop)
    return f"It reads {kept}, which other code sets, and a trace would keep." if kept else None


def _followed(function: Callable[..., Any]) -> Iterator[Any]:
    """Yield a function, and those of the script's that it calls, as methods of their objects."""
    waiting: list[Any] = [function]
    seen: set[int] = set()
    while waiting:
        one = _with_owner(waiting.pop())
        plain = getattr(one, "__func__", one)
        code = getattr(plain, "__code__", None)
        if code is None or id(code) in seen:
            continue
        if one is not function and not is_users(code.co_filename):
            continue
        seen.add(id(code))
        yield one
        waiting += _called_by(plain, getattr(one, "__self__", None))


def why_not_twice(graph: Any, *others: str) -> str | None:
    """Return why a graph must not run beside the script's own call, if it has an operation whose
    effect reaches beyond the variables, or one of `others`, by the begins of their names."""
    kinds = (operation.type for operation in operations_of(graph))
    found = next((kind for kind in kinds if kind.startswith((*_BEYOND, *others))), None)
    return f"It runs `{found}`, which would be seen twice." if found is not None else None


def of_any_rows(values: Any) -> Any:
    """Return nested values with specs in the place of dense tensors, for any number of rows."""
    tensorflow = sys.modules["tensorflow"]

    def relaxed(value: Any) -> Any:
        if not hasattr(value, "ndim"):  # a number of Python's, a ragged or a sparse tensor
            return value
        return tensorflow.TensorSpec([None, *value.shape[1:]] if value.ndim else [], value.dtype)

    return tensorflow.nest.map_structure(relaxed, values)


def _called_by(function: FunctionType, owner: object | None) -> Iterator[Any]:
    """Yield functions that its calls name, also as methods of its `owner`, and those of all layers
    of models that they name."""
    names = {**function.__globals__, **closure_of(function)}
    me = function.__code__.co_varnames[0] if owner is not None else None
    if me is not None:
        names[me] = owner
    tree = _tree_of(function)
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, ast.Call):
            value = value_of(node.func, names)
            if isinstance(value, FunctionType):
                # A method of its class is found as a function.
                of = value_of(node.func.value, names) if hasattr(node.func, "value") else UNKNOWN
                is_method = getattr(type(of), value.__name__, None) is value
                yield MethodType(value, of) if is_method else value
            elif value is not UNKNOWN:
                layers = getattr(value, "_flatten_layers", None)
                for one in layers() if callable(layers) else [value]:
                    # The method of a model or a layer that computes; others are called themselves.
                    yield getattr(one, "call", None) if hasattr(type(one), "call") else one


class _Outside:
    def __init__(
        self,
        definition: ast.FunctionDef,
        plain: Any,
        owner: object | None,
        handed_on: Container[str],
    ) -> None:
        self._definition, self._me, self._handed_on = definition, None, handed_on
        self._declared = {
            name
            for node in ast.walk(definition)
            if isinstance(node, ast.Global | ast.Nonlocal)
            for name in node.names
        }
        self._own = set(_bound_names(definition)) - self._declared
        self._values = dict(getattr(plain, "__globals__", _NOTHING)) | closure_of(plain)
        named = [*definition.args.posonlyargs, *definition.args.args]
        for me in named[:1] if owner is not None else []:  # none in `def f(*args)`
            self._own.discard(me.arg)
            self._values[me.arg] = owner
            self._me = me.arg

    def changes(self) -> Iterator[str]:
        for node in ast.walk(self._definition):
            stored = isinstance(getattr(node, "ctx", None), ast.Store | ast.Del)
            match node:
                case ast.Name(id=name) if stored and name in self._declared:
                    yield f"it assigns `{name}`"
                case ast.Attribute(value=ast.Name(id=of), attr=name, ctx=ast.Store()) if (
                    of == self._me and name in self._handed_on
                ):
                    pass
                case ast.Attribute(value=value) | ast.Subscript(value=value):
                    if stored and self._is_outside(value):
                        yield f"it changes `{ast.unparse(value)}`"
                case ast.Call(func=ast.Name(id="open")) if _writes(node):
                    yield "it writes files"
                case ast.Call(func=ast.Attribute(attr=method)) if method in _FILES:
                    yield "it writes files"
                case ast.Call(func=ast.Attribute(value=value, attr=method)):
                    if self._is_outside(value) and self._is_changed_by(method, value):
                        yield f"it changes `{ast.unparse(value)}`"

    def _is_outside(self, node: ast.expr) -> bool:
        while isinstance(node, ast.Attribute | ast.Subscript):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self._own

    def _is_changed_by(self, method: str, node: ast.expr) -> bool:
        value = value_of(node, self._values)
        if method in _WRITING:
            return isinstance(value, io.IOBase) or hasattr(value, "writerow")
        return method in CHANGING and isinstance(value, CONTAINERS)


def _bound_names(definition: ast.FunctionDef | ast.Lambda) -> Iterator[str]:
    for node in ast.walk(definition):
        match node:
            case ast.arg(arg=name) | ast.ExceptHandler(name=str(name)):
                yield name
            case ast.Name(id=name, ctx=ast.Store()):
                yield name
            case ast.FunctionDef(name=name) if node is not definition:
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((each.asname or each.name).split(".")[0] for each in names)


def _writes(call: ast.Call) -> bool:
    modes = [*call.args[1:2], *(each.value for each in call.keywords if each.arg == "mode")]
    return any(
        isinstance(mode, ast.Constant) and not _WRITE_MODES.isdisjoint(str(mode.value))
        for mode in modes
    )


# Marked stateful in the op registry, yet tf.data parallelises over them: they keep no state.
_HARMLESS_STATEFUL = frozenset({"Assert", "Placeholder", "NoOp"})


def describe_function(dataset: Any) -> RecordedFunction | None:
    """Describe the first function of a dataset; None where it has none that can be read."""
    wrappers = dataset._functions()
    if not wrappers:
        return None
    wrapper = wrappers[0]
    graph = wrapper.function.graph
    python = unwrap(getattr(wrapper, "_func", None))
    code = getattr(python, "__code__", None)
    operations = list(operations_of(graph))
    called_back = list(_python_functions(operations))
    return RecordedFunction(
        name=getattr(python, "__qualname__", None) or "function",
        file=code.co_filename if code else None,
        line=code.co_firstlineno if code else None,
        stateful=any(_is_stateful(operation) for operation in operations),
        graph_ops=dict(Counter(operation.type for operation in operations)),
        python_calls=module_functions(python),
        python_function_names=[source_location(function) for function in called_back],
        python_tokens=sorted(set(_tokens(operations))),
        side_effect=next(filter(None, map(users_side_effect, called_back)), None),
        constant_bytes=constant_bytes(operations),
        returns_constant=any(map(_is_constant, graph.outputs)),
        one_hot_widths=sorted(_one_hot_widths(graph)),
        padded_features=sum(map(_padded_features, operations)),
        row_operations=row_operations(graph),
    )


def users_side_effect(function: Callable[..., Any]) -> str | None:
    """Return the `side_effect` of a function of the script's own; None for a framework's."""
    code = getattr(unwrap(function), "__code__", None)
    return side_effect(function) if code is not None and is_users(code.co_filename) else None


_GENERATORS = frozenset({"Generator", "RandomState", "Random"})


def random_state_of(function: Any, *, only_read: bool = False) -> str | None:
    """Return which generator of random numbers it draws from, as in "it draws from `rng`".

    Only one that the script made counts: copies of a process seed NumPy's and Python's own anew.
    `only_read` leaves out attributes of its object that its own code does not name.
    """
    given: dict[str, Any] = {}
    one = function
    while isinstance(one, partial):
        given |= {**one.keywords, **{f"argument {n}": at for n, at in enumerate(one.args, 1)}}
        one = one.func
    function = _with_owner(function)
    plain = unwrap(function)
    owner = getattr(function, "__self__", function)
    used = getattr(getattr(plain, "__code__", None), "co_names", ())
    everywhere = getattr(plain, "__globals__", {})
    known = {name: everywhere[name] for name in used if name in everywhere}
    of_owner = getattr(owner, "__dict__", {})
    if only_read:
        of_owner = {name: of_owner[name] for name in used if name in of_owner}
    known |= closure_of(plain) | of_owner | given
    for name, value in known.items():
        # A generator of TensorFlow's keeps its state in a variable.
        of_python = type(value).__module__.startswith(("numpy.random", "random"))
        if type(value).__name__ in _GENERATORS and of_python:
            return f"it draws from `{name}`"
    return None


def operations_of(graph: Any) -> Iterator[Any]:
    """Yield the operations of a function's graph, those of functions within it included."""
    yield from graph.get_operations()
    for inner in getattr(graph, "_functions", {}).values():
        inner_graph = getattr(inner, "graph", None)
        if inner_graph is not None:
            yield from inner_graph.get_operations()


def _is_stateful(operation: Any) -> bool:
    if operation.type in _HARMLESS_STATEFUL:
        return False
    return bool(operation.op_def is not None and operation.op_def.is_stateful)


def _tokens(operations: Iterable[Any]) -> Iterator[str]:
    for operation in operations:
        if operation.type in PYTHON_OPERATIONS:
            yield operation.get_attr("token").decode()


def _python_functions(operations: list[Any]) -> Iterator[Callable[..., Any]]:
    from tensorflow.python.ops import script_ops

    for token in _tokens(operations):
        function = script_ops._py_funcs.get(token)
        if function is not None:
            yield getattr(function, "_func", function)


def _one_hot_widths(graph: Any) -> set[int]:
    """Return the widths of the one-hot rows that it returns: a bag of words is made of such rows,
    and is none."""
    widths: set[int | None] = set()
    for tensor in graph.outputs:
        made = tensor
        while made.op.type in ("Identity", "Cast", "Reshape"):
            made = made.op.inputs[0]
        if made.op.type == "OneHot" and made.shape.rank:
            widths.add(made.shape.as_list()[-1])
    return {one for one in widths if one is not None}


def _padded_features(operation: Any) -> int:
    """Return how many dense features an operation parses whose length the examples give."""
    shapes = operation.get_attr("dense_shapes") if operation.type == PARSING else []
    return sum(any(one.size < 0 for one in shape.dim) for shape in shapes)


_CONSTANT = "Const"


def _is_constant(tensor: Any) -> bool:
    while tensor.op.type == "Identity":
        tensor = tensor.op.inputs[0]
    return bool(tensor.op.type == _CONSTANT)


def constant_bytes(operations: Iterable[Any]) -> int:
    """Return the bytes of all constants among these operations of a graph.

    Computed from their shapes, as to read a constant copies it. One value for a whole shape, which
    TensorFlow writes but once, counts as if each were written.
    """
    constants = (one.outputs[0] for one in operations if one.type == _CONSTANT)
    return sum(int((one.shape.num_elements() or 0) * (one.dtype.size or 0)) for one in constants)


# Operations that are made otherwise for a batch of elements. They are found in the graph of one
# element, with the lines that a patch rewrites: an axis that counts from the front becomes the
# next one, a sum over all axes leaves out the first, and what broadcasts against more dimensions
# gets one behind the first.

_AXES = {"ConcatV2", "ExpandDims", "ArgMax", *REDUCING}
"""Operations of which the last input is the axis."""
_SIZES = frozenset({"Shape", "ShapeN", "Size", "Rank"})
"""Operations whose results are no values of an element, and have no row for each."""
_TRACES_MAPS = "data/ops/structured_function.py"


def row_operations(graph: Any) -> list[RowOperation]:
    """Return the operations of a traced function that a batch needs in another form.

    Those in functions within it, such as the branches of `tf.cond`, are not among them.
    """
    found: dict[str, RowOperation] = {}
    for operation in graph.get_operations():
        values, kind = list(operation.inputs), operation.type
        operand, rank = None, _rank(values[0]) if values else None
        if kind in BROADCASTING:
            operand = next((at for at in (0, 1) if _is_shorter(values[at], values[1 - at])), None)
            rank = None if operand is None else _rank(values[operand])
            needed = operand is not None
        elif kind == "Pack":
            needed = operation.get_attr("axis") >= 0 and any(map(_depends_on_element, values))
        elif kind == "Squeeze":
            axes = operation.get_attr("squeeze_dims")
            all_negative = bool(axes) and max(axes) < 0
            needed = not all_negative and _depends_on_element(values[0])
        elif kind in _AXES:
            needed = _counts_from_the_front(values[-1]) and any(
                map(_depends_on_element, values[:-1])
            )
        else:
            whole = kind in ("Reshape", "StridedSlice") and _depends_on_element(values[0])
            needed = kind == PARSING or whole
        if not needed:
            continue
        calls, names = _user_lines(operation)
        if kind == PARSING or _is_named(kind, names):
            row = RowOperation(kind, calls, rank, operand, count=0)
            found.setdefault(repr(row), row).count += 1
    return list(found.values())


def _user_lines(operation: Any) -> tuple[list[tuple[str, int]], list[str]]:
    """Return the user's lines from the function of the map down to the operation, and the functions
    of TensorFlow that the last of them calls."""
    lines: list[tuple[str, int]] = []
    names: list[str] = []
    for frame in operation.traceback:
        if frame.filename.replace("\\", "/").endswith(_TRACES_MAPS):
            lines.clear()
        elif is_users(frame.filename):
            # AutoGraph has a frame of its own for a lambda.
            if lines[-1:] != [(frame.filename, frame.lineno)]:
                lines.append((frame.filename, frame.lineno))
            names.clear()
        else:
            names.append(frame.name)
    return lines, names


_AROUND = frozenset(
    {
        *("_call_unconverted", "converted_call", "error_handler", "new_func"),
        *("op_dispatch_handler", "wrapped", "wrapper"),
    }
)
"""Functions of TensorFlow that call the one that a user's line names."""
_OF_OPERATORS = frozenset(
    {
        *("_tensor_equals_factory", "_tensor_not_equals_factory", "tensor_equals"),
        *("tensor_not_equals", "binary_op_wrapper", "r_binary_op_wrapper"),
    }
)


def _is_named(kind: str, names: Sequence[str]) -> bool:
    """Return True if the user's line names what makes the operation: a patch changes that call, and
    not those that another function of TensorFlow makes."""
    first = next((name for name in names if name not in _AROUND), "")
    named = first.removesuffix("_v2") == ROW_FUNCTIONS[kind]
    return named or (kind in BROADCASTING and first in _OF_OPERATORS)


def _depends_on_element(value: Any) -> bool:
    """Return True if a tensor of a function holds something of what that is given."""
    graph: Any = getattr(value, "graph", None)
    if not hasattr(graph, "captures"):
        return False
    given = {one.name for one in graph.inputs} - {inside.name for _, inside in graph.captures}
    seen, left = set[str](), [value]
    while left:
        one = left.pop()
        if one.name in given:
            return True
        if one.name not in seen and one.op.type not in _SIZES:
            seen.add(one.name)
            left.extend(one.op.inputs)
    return False


def _rank(value: Any) -> int | None:
    rank: int | None = value.shape.rank
    return rank


def _is_shorter(one: Any, other: Any) -> bool:
    """Return True if a value comes from the element and has less dimensions than another."""
    ranks = _rank(one), _rank(other)
    if ranks[0] is None or ranks[1] is None:
        return False
    return ranks[0] < ranks[1] and _depends_on_element(one)


def _counts_from_the_front(axis: Any) -> bool:
    """Return True unless an operation's axes are known to count from the last dimension."""
    from tensorflow.python.framework import tensor_util

    known = tensor_util.constant_value(axis)
    return known is None or not bool((known < 0).all()) or known.size == 0
