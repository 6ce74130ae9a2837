"""Places in the script that consume batches, which of them train, and what the source says of them.

The source is read as a syntax tree; nothing of it is run."""

from __future__ import annotations

import ast
import math
import operator
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from types import FrameType
from typing import Any

from pipediag.capture.callsites import (
    FRAMEWORKS,
    CallSite,
    call_site,
    consuming_frames,
    frames,
    is_users,
    locals_of,
    package_of,
    parsed,
    wraps_its_data,
)
from pipediag.capture.loops.loop import Consumer, Loop, MadeBy
from pipediag.capture.loops.syntax import around, calls_in, in_body, lines_of
from pipediag.capture.loops.taken import most_of_line
from pipediag.capture.pipelines.plan_recorder import PlanRecorder
from pipediag.capture.pipelines.values import UNKNOWN, value_of
from pipediag.capture.process import let_pass
from pipediag.capture.recorder import Recorder
from pipediag.capture.runtime import Runtime, Trainer, TrainersPhase
from pipediag.session.recorded_loops import RecordedLoop
from pipediag.step_source import called_name
from pipediag.vocabulary import EVALUATING, LoopKind

_WHOLE = frozenset({"list", "tuple", "set", "sorted", "sum", "len", "max", "min", "any", "all"})
"""Functions of Python's that go through all that they are given."""
_CALLS_NO_MODEL = _WHOLE | frozenset(
    {"numpy", "append", "extend", "add", "update", "items", "int", "float", "str", "print", "range",
     "zip", "enumerate", "shape", "tolist", "item", "decode"}
)  # fmt: skip
"""Functions that run no model, by the last part of their names."""

_Iteration = ast.For | ast.AsyncFor | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def only_reads(frames: Iterable[FrameType]) -> bool:
    """Return True if the user's innermost line is known to only go through its data."""
    frame = next((one for one in frames if is_users(one.f_code.co_filename)), None)
    tree = parsed(frame.f_code.co_filename) if frame is not None else None
    if frame is None or tree is None:
        return False
    nodes = [one for one in around(tree, frame.f_lineno) if isinstance(one, ast.stmt | _Iteration)]
    if not nodes:
        return False
    if isinstance(nodes[-1], _Iteration):
        return all(called_name(call) in _CALLS_NO_MODEL for call in calls_in(_repeated(nodes[-1])))
    return any(called_name(call) in _WHOLE for call in calls_in([nodes[-1]]))


def _repeated(loop: _Iteration) -> list[ast.AST]:
    if isinstance(loop, ast.For | ast.AsyncFor):
        return [*loop.body]
    return [loop.key, loop.value] if isinstance(loop, ast.DictComp) else [loop.elt]


_AS_LONG = frozenset({"enumerate", "reversed", "sorted", "list", "tuple", "tqdm"})
"""Functions that give as many elements as they are given."""
_SIZED = (list, tuple, dict, set, frozenset, range, str, bytes)
_NUMBERS = (int, float)
_ROUND: dict[str, Callable[[float], int]] = {"int": int, "ceil": math.ceil, "floor": math.floor}
_OPERATORS = {
    ast.Div: operator.truediv,
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


def rounds_around(frames: Iterable[FrameType]) -> int | None:
    """Return the rounds of all loops around the user's innermost line, with those of a library that
    trains for it, up to the script's outermost line.

    The loop whose header that line is counts as none of them. None where the source does not tell.
    """
    rounds = 1
    for frame in _around_training(frames):
        for loop in _loops_around(frame):
            size = None if loop is None else _size_of(loop, frame)
            if size is None:
                return None
            rounds *= size
    return rounds or None


def _around_training(frames: Iterable[FrameType]) -> list[FrameType]:
    """Return the frames from what calls TensorFlow or Keras, as a tuner does for the script, to the
    script's outermost: what runs a script, as a notebook's kernel does, runs it once."""
    stack = list(frames)
    files = [one.f_code.co_filename for one in stack]
    users = [number for number, file in enumerate(files) if is_users(file)]
    if not users:
        return []
    own = [number for number in users if package_of(files[number]) is None] or users
    frameworks = [n for n in range(users[0]) if package_of(files[n]) in FRAMEWORKS]
    return stack[frameworks[-1] + 1 if frameworks else users[0] : own[-1] + 1]


def _loops_around(frame: FrameType) -> list[ast.expr | None]:
    """Return what each loop around the frame's line goes through; None for other repetitions."""
    file, line = frame.f_code.co_filename, frame.f_lineno
    tree = parsed(file)
    if tree is None:
        return [None] if is_users(file) else []
    loops: list[ast.expr | None] = []
    for node in around(tree, line):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                loops = []
            case ast.For() if in_body(node, line):
                known = not (_has_a_limit(node, frame) or _sets_epochs(node, line))
                loops.append(node.iter if known else None)
            case ast.AsyncFor() | ast.While() if in_body(node, line):
                loops.append(None)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                if not _begins(frame, node):
                    loops.append(None)
    return loops


_Comprehension = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


def _begins(frame: FrameType, node: _Comprehension) -> bool:
    """Return True if a frame, at its current place, computes or opens what a comprehension goes
    through."""
    code, data = frame.f_code, node.generators[0].iter
    if sys.version_info < (3, 11):
        # The rest of a comprehension runs in a frame of its own.
        on_its_line = data.lineno <= frame.f_lineno <= (data.end_lineno or 0)
        return on_its_line and not code.co_name.endswith(("comp>", "genexpr>"))
    place = next(islice(code.co_positions(), frame.f_lasti // 2, None))
    line, end_line, start, end = (one or 0 for one in place)
    # Before Python 3.13 what opens an iterator has the place of the whole comprehension.
    alone = _place(node) == ((line, start), (end_line, end)) and len(node.generators) == 1
    first, last = _place(data)
    return alone or (first <= (line, start) and (end_line, end) <= last)


def _place(node: ast.expr) -> tuple[tuple[int, int], tuple[int, int]]:
    end = (node.end_lineno or 0, node.end_col_offset or 0)
    return (node.lineno, node.col_offset), end


def _has_a_limit(loop: ast.For, frame: FrameType) -> bool:
    """Return True for a loop that steps may end, as `if step >= args.max_steps: break` does where
    that is a number, and the steps are not those of one epoch."""
    names = {**frame.f_globals, **locals_of(frame)}
    nodes = list(ast.walk(loop))
    set_anew: list[ast.expr] = [one.target for one in nodes if isinstance(one, ast.For)]
    set_anew += [at for one in loop.body if isinstance(one, ast.Assign) for at in one.targets]
    of_an_epoch = {one.id for at in set_anew for one in ast.walk(at) if isinstance(one, ast.Name)}
    for choice in nodes:
        leaves = isinstance(choice, ast.If) and any(
            isinstance(one, ast.Break | ast.Return) for one in choice.body
        )
        for test in ast.walk(choice.test) if isinstance(choice, ast.If) and leaves else ():
            match test:
                case ast.Compare(left, [ast.GtE() | ast.Gt() | ast.Eq()], [limit]):
                    counter, most = ast.unparse(left), _read(limit, names)
                    if "step" in counter and counter not in of_an_epoch and type(most) is int:
                        return most > 0 and "patience" not in ast.unparse(limit)
    return False


def _sets_epochs(loop: ast.For, line: int) -> bool:
    """Return True if each round gives the call at a line epochs of its own, as in
    `for rate, count in stages: model.fit(data, epochs=count)`."""
    of_a_round = {one.id for one in ast.walk(loop.target) if isinstance(one, ast.Name)}
    for call in calls_in(loop.body):
        given = {one.arg: one.value for one in call.keywords}
        # With `initial_epoch`, each round has those behind the last one's.
        if line in lines_of(call) and "epochs" in given and "initial_epoch" not in given:
            named = {one.id for one in ast.walk(given["epochs"]) if isinstance(one, ast.Name)}
            return bool(named & of_a_round)
    return False


def _size_of(iterated: ast.expr, frame: FrameType) -> int | None:
    """Return the rounds of a loop over that; None where it is unknown."""
    value = _read(iterated, {**frame.f_globals, **locals_of(frame)})
    return len(value) if type(value) in _SIZED else None


def most_taken(frames: Iterable[FrameType]) -> int | None:
    """Return the batches that the user's innermost line takes at most of the data whose iterator it
    makes; None where the source does not tell."""
    frame = next((one for one in frames if is_users(one.f_code.co_filename)), None)
    tree = parsed(frame.f_code.co_filename) if frame is not None else None
    if frame is None or tree is None:
        return None
    return most_of_line(tree, frame.f_lineno, _read, {**frame.f_globals, **locals_of(frame)})


def _read(written: ast.expr, names: dict[str, Any]) -> Any:
    try:
        return _value(written, names)
    except (ArithmeticError, TypeError, ValueError):
        return UNKNOWN  # a name has another value by now, as a step of 0


def _value(written: ast.expr, names: dict[str, Any]) -> Any:
    """Return the value of an expression, as far as it can be read without running anything."""
    value: Any = UNKNOWN
    match written:
        case ast.Constant():
            value = written.value
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            if not any(isinstance(one, ast.Starred) for one in parts):
                value = tuple(parts)
        case ast.Subscript(value=ast.Attribute(of, "shape"), slice=ast.Constant(value=0)):
            array = _value(of, names)
            value = len(array) if _is_array(array) else UNKNOWN
        case ast.Subscript(value=of, slice=ast.Constant(value=key)):
            settings = _value(of, names)
            value = settings.get(key, UNKNOWN) if type(settings) is dict else UNKNOWN
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            numbers = [_value(left, names), _value(right, names)]
            if all(type(one) in _NUMBERS for one in numbers):
                value = _OPERATORS[type(sign)](*numbers)
        case ast.Call(args=[_, *_]):
            value = _called(written, names)
        case _:
            value = value_of(written, names)
    return value


def _called(call: ast.Call, names: dict[str, Any]) -> Any:
    name = called_name(call) or ""
    own = isinstance(call.func, ast.Name) and name in names
    if own and name not in ("tqdm", "trange") and names[name] is not _ROUND.get(name):
        return UNKNOWN  # the script's own, under a name of Python's
    first, *others = given = [_value(one, names) for one in call.args]
    if name in ("range", "trange") and all(type(one) is int for one in given):
        rounds = range(first, *others)
        return rounds if len(rounds) < sys.maxsize else UNKNOWN  # or raises OverflowError
    if name == "zip" and all(type(one) in _SIZED for one in given):
        return min(given, key=len)
    if name == "len" and (type(first) in _SIZED or _is_array(first)):
        return len(first)
    if name in _ROUND and not others and type(first) in _NUMBERS:
        return _ROUND[name](first)
    return first if name in _AS_LONG else UNKNOWN


def _is_array(value: Any) -> bool:
    """Return True for NumPy's own array, whose length is read without running the script's code."""
    return (type(value).__module__, type(value).__name__) == ("numpy", "ndarray")


def _users_calls() -> tuple[tuple[str, int], ...]:
    """Return the places of the script's calls on the stack."""
    users = (one for one in frames() if is_users(one.f_code.co_filename))
    return tuple((one.f_code.co_filename, one.f_lasti) for one in users)


def _come_to_alike(loop: Loop, at_place: Sequence[Loop]) -> list[Loop]:
    return [one for one in at_place if one.come_from and one.come_from == loop.come_from]


def _share_rounds(loop: Loop, at_place: Sequence[Loop]) -> None:
    """Divide the rounds around a line among its loops that the same calls come to in turn, as in
    `for data in (train, valid)`: once one of them is come back to.

    Those that one step draws from, as with `zip`, each have all of the rounds.
    """
    sharing = [one for one in _come_to_alike(loop, at_place) if one.trainer is None]
    joined = any(one.joined or one.record.part_of is not None for one in sharing)
    rounds = loop.record.planned_rounds
    if rounds is None or joined or loop.shares_rounds or sharing[-1:] == [loop]:
        return
    for one in sharing:
        one.record.planned_rounds, one.shares_rounds = max(1, rounds // len(sharing)), True


def _without_rounds_before(loop: Loop, at_place: Sequence[Loop]) -> int | None:
    """Return the rounds that are left behind the fits of other loops that the same calls come to;
    None where the source tells of no more."""
    before = sum(one.fits for one in _come_to_alike(loop, at_place))
    return max(0, (loop.record.planned_rounds or 0) - before) or None


_NOTHING_WRITTEN = "no trainable variable was written"
# Own choice: a fit that is less than twice as long is stood for by the one before it.
_MUCH_LONGER = 2


@dataclass
class LoopRegistry:
    """Finds the loop that a new iterator belongs to.

    Iterators made at one line are one loop, unless two threads are there at once, a `fit` is called
    there that is much longer than the one before, as a first, short call is often a rehearsal, or
    other lines make the dataset: one function may train on one and validate on another.
    """

    recorder: Recorder
    plan: PlanRecorder
    runtime: Runtime
    trainer: Trainer
    _by_place: dict[tuple[str | None, int | None, str], list[Loop]] = field(default_factory=dict)
    """Loops by file, line and the method of what trains."""
    _loops: list[Loop] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.RLock)

    def all(self) -> list[Loop]:
        return self._loops

    def keep_evaluated(self) -> None:
        """Keep what is evaluated on and still there, to be tried: the script is over, or ends."""
        for loop in self._loops:
            if not loop.trains and loop.evaluated is not None:
                loop.dataset = loop.evaluated()

    def let_go_of_fits(self) -> None:
        """Drop the frames of this thread's `fit`, which is over, with the data in them."""
        for loop in self._loops:
            if not loop.runs_elsewhere():
                loop.fit_frame = None

    def consumer_for(self, iterator: Any, dataset: Any, distributed: bool) -> Consumer | None:
        """Register an iterator that is being made now; None where Keras makes it of one batch."""
        if self.trainer.passes_a_batch_on(frames()):
            return None
        site, phase = call_site(consuming_frames()), self.trainer.phase_of(frames())
        at = (site.file, site.line) if site else (None, None)
        place = (*at, phase.method if phase else "")
        kind: LoopKind = "keras" if phase else "distributed" if distributed else "eager"
        made_by = self.lines_of(dataset) if phase is None else frozenset()
        with self._lock:
            at_place = self._by_place.setdefault(place, [])
            loop = self._loop_among(at_place, phase, made_by)
            if loop is None:
                loop = self._new_loop(site, kind, phase)
                loop.record.handed_on = call_site() != site or wraps_its_data(frames())
                loop.come_from = _users_calls()
                loop.record.planned_rounds = _without_rounds_before(loop, at_place)
                at_place.append(loop)
            if phase is not None and phase.role == "training":
                loop.count_fit(self.trainer.data_walker(phase.frame))
            _share_rounds(loop, at_place)
            loop.made_by.add(made_by)
            loop.thread = threading.current_thread()
            loop.record.iterators += 1
            loop.consumers += 1
            ordinal = loop.consumers
        if loop.record.root_op_id is None:
            self._describe_pipeline(loop, dataset)
        if loop.record.role in EVALUATING:
            with suppress(TypeError):  # not every class of the script's lets itself be referred to
                loop.evaluated = weakref.ref(dataset)
        consumer = Consumer(loop, ordinal, element_spec=dataset.element_spec, dataset=dataset)
        consumer.distributed = distributed

        def gone(_: object) -> None:
            consumer.dataset = None  # natively it does not outlive the iterator
            if loop.record.kind != "keras":  # which tells its own ends
                consumer.left_ns = time.monotonic_ns()

        consumer.iterator = weakref.ref(iterator, gone)
        return consumer

    def fed_consumer(self, site: CallSite, *, eager: bool) -> Consumer:
        """Register the loop whose steps begin at this line, `eager` if no tf.function runs them."""
        loop = self._new_loop(site, "eager" if eager else "tf_function")
        loop.record.from_python = True
        model = self.trainer.fed_model(frames())
        if model is not None:
            loop.trainer, loop.model = self.trainer, weakref.ref(model)
        return Consumer(loop, ordinal=0, hand_over="fed")

    def _new_loop(
        self, site: CallSite | None, kind: LoopKind, phase: TrainersPhase | None = None
    ) -> Loop:
        reason = f"{self.trainer.name} {phase.method}" if phase else _NOTHING_WRITTEN
        with self._lock:
            record = RecordedLoop(
                id=f"loop{len(self._loops) + 1}",
                kind=kind,
                role=phase.role if phase else "other",
                role_reason=reason,
                file=site.file if site else None,
                line=site.line if site else None,
                function=site.function if site else None,
                iterators=0,
                steps=0,
                elapsed_ns=0,
                started_ns=time.monotonic_ns(),
                planned_rounds=rounds_around(frames()),
                only_reads=only_reads(consuming_frames()),
            )
            trainer = self.trainer if phase else None
            loop = Loop(record, self.runtime, trainer, thread=threading.current_thread())
            self.recorder.recording.loops.append(record)
            self._loops.append(loop)
        if phase is not None and phase.role == "training":
            frame = loop.fit_frame = phase.frame
            record.batches_per_call = self.trainer.batches_per_call(frame)
            loop.fit_steps = self.trainer.planned_steps(frame)
        if phase is not None and phase.role in EVALUATING:
            record.steps_given = self.trainer.steps_given(phase.frame)
        return loop

    def _describe_pipeline(self, loop: Loop, dataset: Any) -> None:
        record = loop.record
        root = self.runtime.describe_dataset(dataset, record)
        if root is None:
            return
        self.plan.enter_earlier([root])
        record.root_op_id = self.plan.operation_of(root)
        above = list(self.recorder.recording.upstream(record.root_op_id))
        sizes = (operation.parameters.get("batch_size") for operation in above)
        record.batch_size = next((size for size in sizes if isinstance(size, int)), None)
        record.data_steps = max(above[0].cardinality or 0, 0) or None if above else None
        if getattr(dataset, "_datasets", None) is not None:
            # What `distribute_datasets_from_function` makes has a batch for each replica.
            record.batch_size = record.batch_size and record.batch_size * record.replicas
            record.data_steps = record.data_steps and -(-record.data_steps // record.replicas)
        # A generator of the script's may hand on several of one batch.
        own = record.kind != "keras" and call_site() == call_site(consuming_frames())
        most = most_taken(frames()) if own else None
        if most:
            record.data_steps = min(most, record.data_steps or most)

    def describe_keras(self, loop: Loop) -> None:
        """Read the model from the frame of its `fit`, once it has been built by a first step."""
        if loop.fit_frame is None or loop.trainer is None:
            return
        record, frame, trainer = loop.record, loop.fit_frame, loop.trainer
        loop.fit_frame = None  # a kept frame would keep the whole data set alive
        loop.model = weakref.ref(trainer.model_of(frame))
        try:
            record.keras = trainer.describe(frame)
            record.planned_steps = trainer.planned_steps(frame) or None
            if record.batch_size is None:
                record.batch_size = trainer.batch_size(frame)
            # Last, as it asks most of what may be the script's own classes.
            for _, table in trainer.known_tables(trainer.model_of(frame)):
                self.recorder.recording.table(table)
        except Exception as error:
            let_pass(error)
            self.recorder.note(
                f"The {trainer.name} model could not be described: {type(error).__name__}: {error}"
            )

    def lines_of(self, dataset: Any) -> MadeBy:
        """Return the calls that made a dataset, along first inputs; none where they are unknown."""
        root = self.runtime.original_of(dataset)
        if root is None:
            return frozenset()
        self.plan.enter_earlier([root])
        above = self.recorder.recording.upstream(self.plan.operation_of(root))
        return frozenset((one.kind, one.file, one.line) for one in above)

    def _loop_among(
        self, at_place: list[Loop], phase: TrainersPhase | None, made_by: MadeBy
    ) -> Loop | None:
        free = [known for known in at_place if not known.runs_elsewhere()]
        if phase is None and made_by:
            known = [one for one in free if made_by in one.made_by]
            # One without steps takes a second iterator for them, as of `zip`.
            free = known or [one for one in free if not (one.record.steps and all(one.made_by))]
        if not free:
            return None
        if phase is None or phase.role != "training":
            return free[0]
        return None if self._gives_way(free[-1], phase.frame) else free[-1]

    def _gives_way(self, loop: Loop, frame: FrameType) -> bool:
        """Return True if this `fit` is another call, too long for the loop to stand for it."""
        walker = self.trainer.data_walker(frame)
        known = loop.fit_walker() if loop.fit_walker is not None else None
        if walker is None or walker is known:
            return False
        steps = self.trainer.planned_steps(frame)
        return bool(loop.fit_steps and steps and steps >= _MUCH_LONGER * loop.fit_steps)
