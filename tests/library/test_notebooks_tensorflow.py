"""The notebooks of the documentation, run by a kernel as Jupyter runs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.capture.captured import CHECKOUT

NOTEBOOKS = CHECKOUT / "docs" / "notebooks"
LIMIT_S = 240


def ran(name: str, folder: Path) -> list[Any]:
    """The code cells of a notebook, with what they gave."""
    import nbclient
    import nbformat

    notebook = nbformat.read(NOTEBOOKS / name, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=LIMIT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
    )
    client.execute()
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def pages(cell: Any) -> list[str]:
    """What a cell shows as HTML."""
    shown = [output.get("data", {}) for output in cell.outputs]
    return [data["text/html"] for data in shown if "text/html" in data]


def said(cell: Any) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream")


@pytest.mark.parametrize("notebook", sorted(NOTEBOOKS.glob("*.ipynb")), ids=lambda path: path.stem)
def test_what_is_kept_holds_no_output(notebook: Path) -> None:
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert code
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in code)


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")
def test_a_cell_is_measured_in_a_kernel(tmp_path: Path) -> None:
    _, _, magic, watching = ran("slow_training.ipynb", tmp_path)
    session = json.loads((tmp_path / "reports/slow_training/session.json").read_text("utf-8"))
    assert session["script"]["call"] == "cell"
    assert session["script"]["outcome"] == "finished"
    [loop] = session["loops"]
    assert (loop["kind"], loop["file"], loop["line"]) == ("keras", "cell In[3]", 2)
    mapped = next(op for op in session["pipeline"]["ops"] if op["kind"] == "map")
    assert (mapped["file"], mapped["line"]) == ("cell In[2]", 7)
    source = session["verdict"]["source"]
    assert source is None or source["file"].startswith("cell In[")
    assert "ipykernel" not in json.dumps({**session, "environment": None})
    assert len(pages(magic)) == 1
    assert said(magic).count("pipediag: ") == 1
    assert said(watching).strip()
    assert not pages(watching)


@pytest.mark.tensorflow
@pytest.mark.filterwarnings("ignore")
def test_a_pipeline_is_measured_in_a_kernel(tmp_path: Path) -> None:
    *_, analysed, operations, findings = ran("pipeline_alone.ipynb", tmp_path)
    assert len(pages(analysed)) == 1
    [table] = pages(operations)
    assert "cell In[2]" in table
    assert pages(findings)
