"""A script imports the same modules as without pipediag, whatever pipediag has imported."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

import pytest

import pipediag
from pipediag.session.store import load_session
from tests.probe import MakeProbe, run

OF_THE_STANDARD_LIBRARY = (
    "calendar copy ctypes dataclasses decimal inspect json logging pathlib pkgutil queue random "
    "shutil signal statistics struct tempfile textwrap threading token typing urllib"
).split()
OF_PIPEDIAG = ("capture", "click", "session", "signals", "utils")
MINE = "print(__file__, 'is mine')"

IMPORTS_ALL = f"""
    import importlib, sys
    for name in {[*OF_THE_STANDARD_LIBRARY, *OF_PIPEDIAG]}:
        importlib.import_module(name)
"""


@pytest.mark.parametrize("arguments", [("probe.py",), ("-m", "package")], ids=" ".join)
def test_modules_beside_a_script_or_a_module_win_over_ours(
    arguments: tuple[str, ...], make_probe: MakeProbe
) -> None:
    mine = {f"{name}.py": MINE for name in (*OF_THE_STANDARD_LIBRARY, *OF_PIPEDIAG)}
    starts = {"probe.py": IMPORTS_ALL, "package/__main__.py": IMPORTS_ALL}
    probe = make_probe({**starts, **mine}, *arguments)

    natively = probe.natively()

    assert natively.stdout.count("is mine") == len(mine)
    assert probe.under_pipediag("--run-to-end") == natively


def test_modules_on_the_users_path_are_not_taken_for_ours(
    make_probe: MakeProbe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "library"
    library.mkdir()
    for name in ("statistics", "json", "click", "ast"):
        (library / f"{name}.py").write_text(MINE)
    monkeypatch.setenv("PYTHONPATH", str(library))
    probe = make_probe("import statistics, json, click")

    natively = probe.natively()

    assert natively.stdout.count("is mine") == 3
    assert probe.under_pipediag("--run-to-end") == natively


def test_a_module_called_pipediag_is_the_scripts(make_probe: MakeProbe) -> None:
    text = """
        import pipediag
        print(pipediag.__file__, pipediag.MINE)
        raise ValueError("so that pipediag has to go on without its name")
    """
    probe = make_probe({"probe.py": text, "pipediag.py": "MINE = True"})
    # As the console script does: `python -m pipediag` would run the file here.
    start = "import sys; sys.path.remove(''); from pipediag.__main__ import run; run()"
    command = ["-c", start, "analyze", "-q", "--run-to-end", "-o", "../out", *probe.arguments]

    assert run([sys.executable, *command], probe.directory) == probe.natively()
    assert load_session(probe.directory / "../out").script.outcome == "raised"


def test_nothing_is_imported_later_that_the_script_may_own() -> None:
    """Within functions only what TensorFlow brings: there, an import finds the script's modules."""
    package = Path(pipediag.__file__).parent
    in_the_child = [*package.glob("capture/**/*.py"), package / "child/ending.py"]
    theirs = {*sys.stdlib_module_names, "pipediag"}

    found = [
        f"{path.relative_to(package)}:{node.lineno}"
        for path in in_the_child
        for function in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(function, ast.FunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and _top_level_names(node) & theirs
    ]

    assert found == []


def _top_level_names(node: ast.Import | ast.ImportFrom) -> set[str]:
    names = (
        [node.module or ""] if isinstance(node, ast.ImportFrom) else [n.name for n in node.names]
    )
    return {name.partition(".")[0] for name in names}
