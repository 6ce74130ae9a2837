"""A training step that stands in a loop, as a function: what it is given, and what it returns.

Only the standard library's syntax tree is used, as both the patch and the script's own process need
it. Nothing of the source is run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass


class NotAFunctionError(Exception):
    """The step can't become a function; the message is one sentence."""


@dataclass(frozen=True)
class StepSource:
    """Statements from `with GradientTape()` to `apply_gradients`; lines count from 1."""

    first: int
    last: int
    loop_line: int
    """The outermost loop around them in the same function or module: definitions go before it."""
    loop_indent: str
    indent: str
    parameters: tuple[str, ...]
    """Names that the loop sets and the step reads, in the order of their first use."""
    results: tuple[str, ...]
    """Names that the step sets and other code reads, or the next step."""
    constants: tuple[str, ...]
    """Other names that the step reads: of the function around the loop, or of the module."""
    before: tuple[str, ...]
    """Lines, not indented, of statements that need nothing of the step and may change from step to
    step."""
    body: tuple[str, ...]
    after: tuple[str, ...]
    """Lines of statements that only look at results, as `print` and `.numpy()` do."""
    metrics: tuple[str, ...]
    """Code of objects that are called with a result, for an effect that a tf.function has only of
    metrics: `self.train_loss`."""

    def definition(self, name: str) -> list[str]:
        """Return the function's lines, without a decorator, indented as the loop is."""
        unit = 1 if "\t" in self.indent else 4
        inner = self.loop_indent + self.indent[len(self.loop_indent) :][:unit]
        text = [f"{self.loop_indent}def {name}({', '.join(self.parameters)}):"]
        text += _at(inner, self.body)
        return [*text, f"{inner}return {', '.join(self.results)}"] if self.results else text

    def use(self, name: str, numbers: Sequence[str] = (), tf: str = "tf") -> list[str]:
        """Return the lines that take the place of the step.

        `numbers` are parameters that are floats of Python, of each of which a tf.function would
        make another trace; `tf` is TensorFlow's name in the file.
        """
        given = f"{', '.join(self.results)} = " if self.results else ""
        # A number may become an int: `min(1, epoch / 10)`.
        arguments = [
            f"{tf}.constant(float({one}))" if one in numbers else one for one in self.parameters
        ]
        call = f"{given}{name}({', '.join(arguments)})"
        return _at(self.indent, (*self.before, call, *self.after))


def _at(indent: str, lines: Iterable[str]) -> list[str]:
    return [indent + line if line else "" for line in lines]


_TAPE = "GradientTape"
_BLOCKS = ("body", "orelse", "finalbody")
_Loop = ast.For | ast.While
_Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef
_Shared = ast.Global | ast.Nonlocal
_LEAVES = (
    ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Break | ast.Continue | ast.Global
    | ast.Nonlocal | ast.Import | ast.ImportFrom | ast.Delete | ast.Try | ast.AsyncWith
)  # fmt: skip
_ON_HOST = frozenset({"print", "float", "int", "input", "next"})
_OF_SIZES = frozenset({"as_list", "get_shape", "int", "len", "shape"})
_ON_VARIABLES = ("assign", "assign_add", "assign_sub", "update_state", "watch")
"""Methods that a tf.function calls whenever it runs."""
_METHODS_ON_HOST = frozenset(
    "numpy item append extend info debug warning set_postfix set_description time "
    "perf_counter".split()
)


def step_at(text: str, line: int) -> StepSource:
    """Return the step whose tape is opened on a line of the source.

    Whether other code sets what the step reads, which a trace would keep, is not looked at.

    Raises:
        NotAFunctionError: the step can't become a function of its own.
    """
    tree = ast.parse(text)
    withs = (node for node in ast.walk(tree) if isinstance(node, ast.With))
    tape = next((one for one in withs if one.lineno == line and _opens_a_tape(one)), None)
    if tape is None:
        raise NotAFunctionError(f"Line {line} is no `with` statement that opens one GradientTape.")
    above = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    chain: list[ast.AST] = [tape]
    while not isinstance(chain[-1], ast.Module | _Scope):
        chain.append(above[chain[-1]])
    scope, loops = chain[-1], [one for one in chain if isinstance(one, _Loop)]
    if not loops or isinstance(scope, ast.ClassDef | ast.AsyncFunctionDef):
        raise NotAFunctionError("The step is in no loop of the same function.")
    blocks: list[list[ast.stmt]] = [getattr(chain[1], name, []) for name in _BLOCKS]
    statements = next(block[block.index(tape) :] for block in blocks if tape in block)
    step = _up_to_apply(statements)
    following = statements[len(step) : len(step) + 1]
    if following and following[0].lineno == step[-1].end_lineno:
        raise NotAFunctionError(f"Line {step[-1].end_lineno} has several statements.")
    return _analysed(text, tree, scope, loops[-1], step)


def _opens_a_tape(node: ast.With) -> bool:
    calls = [one.context_expr for one in node.items]
    return len(calls) == 1 and isinstance(calls[0], ast.Call) and called_name(calls[0]) == _TAPE


def called_name(call: ast.Call) -> str | None:
    """Return the last part of the name of what is called."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return None


def _calls(node: ast.AST, *names: str) -> bool:
    return any(isinstance(one, ast.Call) and called_name(one) in names for one in ast.walk(node))


def _updates(node: ast.AST) -> bool:
    """Return True for `apply_gradients(...)`, `apply(gradients, variables)` of Keras 3, and
    `minimize(loss, variables, tape=tape)`; what is called `apply` and returns something is none."""
    for one in ast.walk(node):
        match one:
            case ast.Expr(value=ast.Call(func=ast.Attribute(attr=name)) as call):
                given = {each.arg for each in call.keywords}
                both = len(call.args) + len(given) == 2 and given <= {"trainable_variables"}
                if (name == "apply" and both) or (name == "minimize" and "tape" in given):
                    return True
    return _calls(node, "apply_gradients")


def _up_to_apply(statements: list[ast.stmt]) -> list[ast.stmt]:
    applies = [place for place, one in enumerate(statements) if _updates(one)]
    if not applies:
        raise NotAFunctionError("No `apply_gradients` follows the tape in the same block.")
    step = statements[: applies[0] + 1]
    tapes = [one for one in step if _calls(one, _TAPE)]
    if len(tapes) != 1 or len(applies) != 1 or not isinstance(step[-1], ast.Expr | ast.With):
        raise NotAFunctionError("The step has several tapes, or applies gradients several times.")
    return step


def _analysed(
    text: str, tree: ast.Module, scope: ast.AST, loop: ast.AST, step: list[ast.stmt]
) -> StepSource:
    lines, tape = text.splitlines(), step[0]
    assert isinstance(tape, ast.With)
    assert isinstance(loop, _Loop)
    for node in _nodes_of(step):
        if isinstance(node, _LEAVES):
            raise NotAFunctionError(f"Line {node.lineno} leaves the step, or is no part of one.")
        if isinstance(node, ast.Constant | ast.JoinedStr) and node.end_lineno != node.lineno:
            raise NotAFunctionError(f"The text on line {node.lineno} has several lines.")
    before, after = _divided(tape, step, _imported(tree))
    moved = before + after
    inner = [one for one in tape.body if one not in moved]
    if not inner:
        raise NotAFunctionError("Nothing is left in the tape.")
    own_tape = ast.copy_location(ast.With(items=tape.items, body=inner), tape)
    body: list[ast.stmt] = [own_tape, *(one for one in step[1:] if one not in moved)]
    metrics = {one: name for one in (*inner, *body[1:]) if (name := _called_with_results(one))}
    for one in (*inner, *body[1:]):
        if one not in metrics:
            _refuse_host(one)
    reads, sets = _names_of(body)
    always = {name for one in body for name in _set_always(one)}
    if sometimes := sorted(sets.keys() - always):
        raise NotAFunctionError(f"`{sometimes[0]}` is set only in some cases.")
    in_loop = _names_of([loop])[1]
    away = [*_outside_of(scope, step), *_nodes_of(moved)]
    outside = set(map(_name_read, away))
    # What the step reads before it sets it, an RNN's state, it hands on to the next one.
    targets = (one.target for one in ast.walk(loop) if isinstance(one, ast.For))
    carried = reads.keys() - _names_of(targets)[1]
    tapes = _names_of(tape.items)[1].keys()
    shared = {name for one in ast.walk(scope) if isinstance(one, _Shared) for name in one.names}
    read_later = outside | carried | shared
    results = tuple(one for one in sets if one in read_later and one not in tapes)
    of_others = _behind_other_tapes(scope, tape, tapes)
    if not tapes.isdisjoint(carried | {_name_read(one) for one in away if one not in of_others}):
        raise NotAFunctionError("Other code reads the tape, too.")
    return StepSource(
        first=tape.lineno,
        last=step[-1].end_lineno or step[-1].lineno,
        loop_line=loop.lineno,
        loop_indent=_indent(lines, loop),
        indent=_indent(lines, tape),
        parameters=tuple(one for one in reads if one in in_loop),
        results=results,
        constants=tuple(one for one in reads if one not in in_loop),
        before=_lines(lines, before),
        body=_kept(lines, tape, step, moved),
        after=_lines(lines, after),
        metrics=tuple(metrics.values()),
    )


def _behind_other_tapes(scope: ast.AST, tape: ast.With, names: Set[str]) -> set[ast.AST]:
    """Return the nodes of a scope that stand in or behind another `with ... as tape` of the block,
    up to the next one."""
    found: set[ast.AST] = set()
    for node in ast.walk(scope):
        for block in (getattr(node, name, None) for name in _BLOCKS):
            other = False
            for one in block if isinstance(block, list) else ():
                if isinstance(one, ast.With) and not names.isdisjoint(_names_of(one.items)[1]):
                    other = one is not tape
                if other:
                    found |= {*ast.walk(one)}
    return found


def _imported(tree: ast.Module) -> set[str]:
    return {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }


def _divided(
    tape: ast.With, step: list[ast.stmt], imported: set[str]
) -> tuple[list[ast.stmt], list[ast.stmt]]:
    """Return statements that go before the function's call, and those that follow it.

    Between the tape and the last statement, what reads nothing that the step sets goes before:
    `optimizer.learning_rate.assign(schedule(count))` reads a Python number, which a tf.function
    would keep as it was when it was traced.
    """
    flat = [*tape.body, *step[1:]]
    before: list[ast.stmt] = []
    after: list[ast.stmt] = []
    for place, one in enumerate(flat):
        reads, sets = _names_of([one])
        read_later, set_later = _names_of(flat[place + 1 :])
        earlier = {*_names_of(flat[:place])[1], *_names_of(tape.items)[1]}
        # What it reads must still be the same behind the step, objects that the step changes, too.
        used_later = sets.keys() & read_later.keys() | reads.keys() & set_later.keys()
        changing = _owners(one) & read_later.keys() - earlier - imported
        if _takes_a_size(one):
            changing = set()
        if _looks_only(one) and not used_later and not changing:
            after.append(one)
            continue
        by_tape = _names_of(each for each in tape.body if each not in after)[0].keys() - imported
        needed = reads.keys() & (earlier | by_tape) or sets.keys() & by_tape
        if one in step[1:-1] and not needed:
            before.append(one)
    return before, after


def _looks_only(statement: ast.stmt) -> bool:
    if _updates(statement) or _calls(statement, _TAPE, "gradient", *_ON_VARIABLES):
        return False
    match statement:
        case ast.AugAssign(target=target):
            return isinstance(target, ast.Name)
        case ast.Assign(targets=targets):
            if any(isinstance(one, ast.Attribute | ast.Subscript) for one in targets):
                return False
            return _host_call(statement) is not None or _takes_a_size(statement)
        case ast.Expr():
            return _is_for_effect(statement) or _host_call(statement) is not None
    return False


def _takes_a_size(statement: ast.stmt) -> bool:
    """Return True for `n = len(x)`, or with its shape: a tf.function would return a tensor."""
    match statement:
        case ast.Assign(value=value):
            nodes = [*ast.walk(value)]
            calls = {called_name(one) for one in nodes if isinstance(one, ast.Call)}
            named = {getattr(one, "attr", getattr(one, "id", None)) for one in nodes}
            return calls <= _OF_SIZES and not _OF_SIZES.isdisjoint(named)
    return False


def _is_for_effect(statement: ast.stmt) -> bool:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute())):
            return not _updates(statement) and not _calls(statement, *_ON_VARIABLES)
    return False


def _owners(node: ast.AST) -> set[str]:
    attributes = (one.value for one in ast.walk(node) if isinstance(one, ast.Attribute))
    return {one.id for one in attributes if isinstance(one, ast.Name)}


def _host_call(node: ast.AST) -> ast.Call | None:
    calls = (one for one in ast.walk(node) if isinstance(one, ast.Call))
    return next((one for one in calls if _is_for_host(one)), None)


def _is_for_host(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id="int"):
            return "shape" not in ast.unparse(call)  # which a trace knows
        case ast.Name(id="next"):
            return reads_on(call)
        case ast.Name(id=name):
            return name in _ON_HOST
        case ast.Attribute(value=ast.Attribute(attr="summary")):
            return True
        case ast.Attribute(attr=name):
            return name in _METHODS_ON_HOST
    return False


def reads_on(call: ast.Call) -> bool:
    """Return True for `next` of an iterator that is kept, and not of one that is made for it, as in
    `next(iter(features.values()))`."""
    match call.args:
        case [ast.GeneratorExp() | ast.Call(func=ast.Name(id="iter")), *_]:
            return False
    return True


def _called_with_results(statement: ast.stmt) -> str | None:
    match statement:
        case ast.Expr(value=ast.Call(func=ast.Attribute() as called, args=[_, *_])):
            if _is_for_effect(statement) and _host_call(statement) is None:
                return ast.unparse(called)
    return None


def _refuse_host(statement: ast.stmt) -> None:
    for one in ast.walk(statement):
        if isinstance(one, ast.stmt) and _is_for_effect(one):
            raise NotAFunctionError(
                f"Line {one.lineno} calls `{ast.unparse(one)}` for its effect, which a tf.function "
                "would do once."
            )
    call = _host_call(statement)
    if call is not None:
        raise NotAFunctionError(
            f"Line {call.lineno} needs a value in Python in the middle of the step: "
            f"`{ast.unparse(call)}`."
        )


def _indent(lines: Sequence[str], statement: ast.stmt) -> str:
    line = lines[statement.lineno - 1]
    indent = line[: len(line) - len(line.lstrip())]
    if len(indent.encode()) != statement.col_offset:
        raise NotAFunctionError(f"Line {statement.lineno} has several statements.")
    return indent


def _lines(lines: Sequence[str], statements: list[ast.stmt]) -> tuple[str, ...]:
    return tuple(
        text for one in statements for text in _dedented(lines, _indent(lines, one), _numbers(one))
    )


def _kept(
    lines: Sequence[str], tape: ast.With, step: list[ast.stmt], moved: list[ast.stmt]
) -> tuple[str, ...]:
    """Return the step's lines without those of statements that are moved out of it."""
    for one in (*tape.body, *step[1:]):
        _indent(lines, one)
    away = {number for one in moved for number in _numbers(one)}
    whole = range(tape.lineno, _numbers(step[-1]).stop)
    kept = [number for number in whole if number not in away]
    return tuple(_dedented(lines, _indent(lines, tape), kept))


def _numbers(statement: ast.stmt) -> range:
    """Return the numbers of a statement's lines."""
    return range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)


def _dedented(lines: Sequence[str], indent: str, numbers: Iterable[int]) -> list[str]:
    texts = (lines[number - 1] for number in numbers)
    return [text.removeprefix(indent) if text.strip() else "" for text in texts]


def _nodes_of(parts: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Iterate over all nodes of parts of a syntax tree."""
    return (one for part in parts for one in ast.walk(part))


_Used = dict[str, None]
"""Names in the order in which they are first used."""


def _names_of(nodes: Iterable[ast.AST]) -> tuple[_Used, _Used]:
    """Return names that are read before the nodes set them, and all that they set."""
    names = _Names()
    for node in nodes:
        names.visit(node)
    return names.reads, names.sets


class _Names(ast.NodeVisitor):
    """Goes over code as Python runs it: values before what is set to them."""

    def __init__(self) -> None:
        self.reads: _Used = {}
        self.sets: _Used = {}

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.sets.setdefault(node.id)
        elif node.id not in self.sets:
            self.reads.setdefault(node.id)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id not in self.sets:
            self.reads.setdefault(node.target.id)
        self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def _scope(self, node: ast.AST) -> None:
        inside = [*ast.walk(node)]
        names = [one for one in inside if isinstance(one, ast.Name)]
        own = {one.id for one in names if not isinstance(one.ctx, ast.Load)} | self.sets.keys()
        own |= {one.arg for one in inside if isinstance(one, ast.arg)}
        self.reads |= dict.fromkeys(one.id for one in names if one.id not in own)
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            self.sets.setdefault(node.name)

    visit_FunctionDef = visit_ClassDef = visit_Lambda = _scope  # noqa: N815
    visit_ListComp = visit_SetComp = visit_DictComp = visit_GeneratorExp = _scope  # noqa: N815

    def generic_visit(self, node: ast.AST) -> None:
        fields = [name for name in node._fields if name not in ("target", "targets")]
        if len(fields) < len(node._fields):  # behind the value, or what a loop goes over
            fields.insert(1, "targets" if isinstance(node, ast.Assign) else "target")
        for name in fields:
            value = getattr(node, name, None)
            for one in value if isinstance(value, list) else [value]:
                if isinstance(one, ast.AST):
                    self.visit(one)


def _name_read(node: ast.AST) -> str | None:
    """Return the name that a node reads or deletes, or adds to."""
    match node:
        case (
            ast.Name(id=name, ctx=ast.Load() | ast.Del()) | ast.AugAssign(target=ast.Name(id=name))
        ):
            return name
    return None


def _set_always(statement: ast.stmt) -> set[str]:
    """Return the names that a statement sets in any case."""
    if isinstance(statement, ast.With):
        inner = {name for one in statement.body for name in _set_always(one)}
        return inner | _names_of(statement.items)[1].keys()
    conditional = isinstance(statement, ast.If | ast.For | ast.While)
    return set() if conditional else set(_names_of([statement])[1])


def _outside_of(scope: ast.AST, inside: list[ast.stmt]) -> Iterator[ast.AST]:
    """Iterate over the nodes of a scope but for those of the statements inside of it."""
    for child in ast.iter_child_nodes(scope):
        if child not in inside:
            yield child
            yield from _outside_of(child, inside)
