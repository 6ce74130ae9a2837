"""Loops that a tf.function runs by itself: no Python runs between their steps, so they are named
alone. What is saved of functions is kept free of our names."""

from __future__ import annotations

from typing import Any

from pipediag.capture.guard import Guard
from pipediag.capture.pipelines.calls import user_site
from pipediag.capture.watching.step_clock import Watchers
from pipediag.session.recording import NAME_BEGINS, OtherUse

_BUILD = "_build_meta_graph"


class GraphLoops:
    """Hooks onto AutoGraph's two ways to loop over data."""

    def __init__(self, watchers: Watchers) -> None:
        self._guard, self._updates = watchers.guard, watchers.updates
        self._uses = watchers.recorder.recording.other_uses
        self._found = self._guard.entry("noting loops inside a tf.function", self._note)

    def install_datasets(self, dataset_autograph: Any) -> None:
        """Note each `for batch in dataset` inside a tf.function."""
        registry = dataset_autograph.control_flow.for_loop_registry._registry
        dataset_class = dataset_autograph.dataset_ops.DatasetV2
        registry[dataset_class] = self._guard.before(registry[dataset_class], self._found)

    def install_iterators(self, control_flow: Any) -> None:
        """Note each `for batch in iterator` inside a tf.function."""
        for name in ("_tf_iterator_for_stmt", "_tf_distributed_iterable_for_stmt"):
            hooked = self._guard.before(getattr(control_flow, name), self._found)
            setattr(control_flow, name, hooked)

    def _note(self, *_: Any, **__: Any) -> None:
        functions, site = self._updates.here.functions, user_site()
        if not functions or site is None:
            return
        self._updates.looping.add(functions[0])
        place = (site.file, site.line)
        if all((use.file, use.line) != place for use in self._uses):
            what = "a loop inside a tf.function, whose steps are not seen: run it in Python, and "
            self._uses.append(OtherUse(f"{what}only the step in the function", *place, 1))


def watch_saving(module: Any, guard: Guard) -> None:
    """Hook onto the module that makes SavedModels: others use them."""
    original = getattr(module, _BUILD, None)
    if original is None:
        return
    cleans = guard.entry("keeping its own names out of saved models", without_ours)

    def build(*args: Any, **kwargs: Any) -> Any:
        built = original(*args, **kwargs)
        cleans(built[0])
        return built

    setattr(module, _BUILD, guard.hook(original, build))


def without_ours(meta_graph: Any) -> None:
    """Take our names of datasets out of a MetaGraphDef."""
    graph = meta_graph.graph_def
    for nodes in (graph.node, *(function.node_def for function in graph.library.function)):
        for node in nodes:
            if "metadata" in node.attr and NAME_BEGINS.encode() in node.attr["metadata"].s:
                node.attr["metadata"].s = b""
