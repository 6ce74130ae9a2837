"""Keeps operations of ours out of what a script saves.

A function that loops over data has a counter in its graph while it is watched. A SavedModel is used
elsewhere, by others: it is written without.
"""

from __future__ import annotations

from typing import Any

from pipediag.capture.frameworks.tensorflow.beside_graphs import SCOPE
from pipediag.capture.guard import Guard
from pipediag.session.recorded_operations import NAME_BEGINS

_BUILD = "_build_meta_graph"


def watch_saving(module: Any, guard: Guard) -> None:
    """Hook onto the module that makes SavedModels."""
    original = getattr(module, _BUILD, None)
    if original is None:
        return
    cleans = guard.entry("keeping its own operations out of saved models", without_ours)

    def build(*args: Any, **kwargs: Any) -> Any:
        built = original(*args, **kwargs)
        cleans(built[0])
        return built

    setattr(module, _BUILD, guard.hook(original, build))


def without_ours(meta_graph: Any) -> None:
    """Take our operations out of a MetaGraphDef, and our names of datasets.

    Other operations wait for ours at most, and read nothing of them.
    """
    graph = meta_graph.graph_def
    _clean(graph.node)
    for function in graph.library.function:
        ours = _clean(function.node_def)
        gone = [name for name, node in function.control_ret.items() if node in ours]
        for name in gone:
            del function.control_ret[name]
        kept = [name for name in function.signature.control_output if name not in gone]
        del function.signature.control_output[:]
        function.signature.control_output.extend(kept)


def _clean(nodes: Any) -> set[str]:
    """Remove our nodes and all that waits for them; return their names."""
    for node in nodes:
        if "metadata" in node.attr and NAME_BEGINS.encode() in node.attr["metadata"].s:
            node.attr["metadata"].s = b""
    ours = {node.name for node in nodes if _is_ours(node.name)}
    if not ours:
        return ours
    for place in reversed(range(len(nodes))):
        if nodes[place].name in ours:
            del nodes[place]
    for node in nodes:
        kept = [one for one in node.input if one.removeprefix("^") not in ours]
        if len(kept) < len(node.input):
            del node.input[:]
            node.input.extend(kept)
    return ours


def _is_ours(name: str) -> bool:
    return any(part.startswith(SCOPE) for part in name.split("/"))
