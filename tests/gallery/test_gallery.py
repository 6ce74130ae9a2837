"""The gallery is made of sessions that are at hand; no sample is run here."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.reporters.html.page import MAX_BYTES
from tests import browser
from tests.gallery.__main__ import SAMPLES, write
from tests.gallery.recorded import GALLERY, last_run
from tests.gallery.samples import EXHIBITS, PICTURED
from tests.reporters import sessions, trial_sessions


def test_each_exhibit_is_a_sample() -> None:
    assert len(EXHIBITS) == 8
    assert [one.sample for one in EXHIBITS if not (SAMPLES / f"{one.sample}.py").exists()] == []


@pytest.mark.parametrize("sample", [one.sample for one in EXHIBITS])
def test_each_page_holds_the_session_that_it_is_made_again_of(sample: str) -> None:
    assert Path(last_run(sample).script.path).stem == sample


def test_the_table_leads_to_every_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(browser, "missing", lambda: "none here")
    first, second = EXHIBITS[0].sample, EXHIBITS[1].sample

    write(tmp_path, {first: trial_sessions.everything_tried(), second: sessions.nothing_measured()})

    text = (tmp_path / "README.md").read_text()
    assert f"[`{first}`]({first}.html)" in text
    assert "3.10x" in text
    assert "killed before a step was seen" in text
    assert {path.name for path in tmp_path.iterdir()} == {
        "README.md",
        f"{first}.html",
        f"{second}.html",
    }


@pytest.mark.browser
def test_pictures_are_small_enough_to_keep(tmp_path: Path) -> None:
    if reason := browser.missing():
        pytest.skip(reason)
    write(tmp_path, {PICTURED: trial_sessions.patched()})

    sizes = {path.stem: path.stat().st_size for path in tmp_path.glob("*.png")}
    assert sizes.keys() == {"light", "dark", "narrow"}
    assert max(sizes.values()) < 250_000
    assert "The first screen of" in (tmp_path / "README.md").read_text()


def test_what_is_kept_names_no_machine_and_is_small() -> None:
    for page in GALLERY.glob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert "/tmp/" not in text
        assert str(GALLERY.parents[1]) not in text
        assert len(text.encode()) < MAX_BYTES
