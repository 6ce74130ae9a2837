"""The public scripts: made from mirrors, changed line by line, judged by the table's truth."""

from __future__ import annotations

import hashlib
import json
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.public_scripts.judging import Applied, judged, markdown
from benchmarks.public_scripts.made_data import KINDS
from benchmarks.public_scripts.scripts import (
    PublicScript,
    SourceError,
    Truth,
    changed,
    from_notebook,
    made,
    public_scripts,
)
from pipediag.session.ledger import RunGain
from pipediag.trials.statistics import Estimate
from tests.factories import make_finding, make_session

SCRIPT = PublicScript(
    name="train",
    repository="owner/name",
    commit="HEAD",
    path="train.py",
    sha256="",
    changed="nothing",
)


def test_notebook_cells_become_lines_with_one_blank_between_and_magic_as_comments() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# words"]},
        {"cell_type": "code", "source": ["%load_ext x\n", "a = 1"]},
        {"cell_type": "code", "source": ["!pip install x\n", "b = a % 2"]},
    ]
    text = from_notebook(json.dumps({"cells": cells}))
    assert text.split("\n") == ["# %load_ext x", "a = 1", "", "# !pip install x", "b = a % 2", ""]


def test_what_stays_keeps_its_line() -> None:
    script = replace(SCRIPT, put=((2, 3, "ours"),), swap=((4, "old", "new"),), until=5)
    assert changed(script, "a\nb\nc\nd = old\ne") == "a\nours\n\nd = new\n"


@pytest.mark.parametrize(
    ("edit", "words"),
    [
        ({"put": ((1, 1, "x\ny"),)}, "too few"),
        ({"swap": ((1, "z", "y"),)}, "not once"),
    ],
)
def test_an_edit_that_does_not_fit_is_refused(edit: dict[str, object], words: str) -> None:
    with pytest.raises(SourceError, match=words):
        changed(replace(SCRIPT, **edit), "a\nb")  # type: ignore[arg-type]


def test_a_script_comes_from_a_mirror_with_its_packages_if_it_is_the_published_one(
    tmp_path: Path,
) -> None:
    work = tmp_path / "mirrors" / "owner" / "name"
    (work / "helpers").mkdir(parents=True)
    (work / "train.py").write_text("import helpers\n")
    (work / "helpers" / "__init__.py").write_text("")
    for words in (
        ["init", "-q"],
        ["add", "."],
        ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"],
    ):
        subprocess.run(["git", "-C", str(work), *words], check=True)
    digest = hashlib.sha256(b"import helpers\n").hexdigest()
    script = replace(SCRIPT, sha256=digest, packages=("helpers",))
    path = made(script, tmp_path / "mirrors", tmp_path / "out")
    assert path.read_text() == "import helpers\n\n"
    packages = path.parent / "packages"
    assert (packages / "helpers" / "__init__.py").exists()
    assert "helpers/__init__.py," in next(packages.glob("*.dist-info/RECORD")).read_text()
    with pytest.raises(SourceError, match="hash"):
        made(replace(script, sha256="0"), tmp_path / "mirrors", tmp_path / "other")
    with pytest.raises(SourceError, match="no mirror of nobody/name"):
        made(replace(script, repository="nobody/name"), tmp_path / "mirrors", tmp_path / "third")


def test_the_table_is_whole() -> None:
    scripts = public_scripts()
    assert len(scripts) >= 15
    for script in scripts:
        assert len(script.sha256) == 64
        assert len(script.commit) == 40
        assert script.changed
        assert script.truth.bottleneck, script.name
        assert script.truth.advice, script.name
        assert script.truth.how, script.name
        assert {word.partition(":")[0] for word in script.data} <= set(KINDS)
    with pytest.raises(SourceError, match="nobody"):
        public_scripts(["nobody"])


def test_a_session_is_judged_by_verdict_place_and_first_advice() -> None:
    session = make_session()
    verdict = session.verdict.model_copy(update={"bottleneck": "input", "where": "steps"})
    session = session.model_copy(update={"verdict": verdict, "findings": []})
    truth = Truth(bottleneck=("input",), where=("steps",), advice=("none",), how="probes")
    right = judged(replace(SCRIPT, truth=truth), session, None, 1.0)
    assert right.verdict_right
    assert right.advice_right
    elsewhere = replace(truth, where=("evaluation",))
    assert not judged(replace(SCRIPT, truth=elsewhere), session, None, 1.0).verdict_right
    advised = session.model_copy(update={"findings": [make_finding("missing-cache")]})
    assert not judged(replace(SCRIPT, truth=truth), advised, None, 1.0).advice_right


def test_a_promise_is_kept_where_the_intervals_overlap() -> None:
    gain = RunGain(
        speedup=1.5, ci95=(1.4, 1.6), basis="measured", before_s=3, after_s=2, scope="run"
    )
    assert Applied(("x",), gain, Estimate(1.7, 1.55, 1.8, 2)).kept
    assert not Applied(("x",), gain, Estimate(1.1, 1.0, 1.2, 2)).kept
    assert Applied(("x",), None, Estimate(1.1, 1.0, 1.2, 2)).kept is None
    assert Applied(("x",), gain, None, "failed").kept is None
    for applied in (Applied(("x",), gain, Estimate(1.7, 1.55, 1.8, 2)), Applied((), None, None)):
        assert Applied.from_record(json.loads(json.dumps(applied.as_record()))) == applied


def test_the_table_says_where_a_script_comes_from_and_whether_it_was_quiet() -> None:
    outcome = judged(SCRIPT, make_session(), None, 1.0)
    text = markdown([outcome], "a machine", quiet=False)
    assert "owner/name HEAD `train.py`" in text
    assert "noisy" in text
    assert "noisy" not in markdown([outcome], "a machine", quiet=True)
