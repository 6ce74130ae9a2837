from __future__ import annotations

from pathlib import Path

import pytest

from pipediag.sensors.tensorflow_builds import BUILDS, installed_builds


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory that alone is searched for modules."""
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    return tmp_path


def note(folder: Path, name: str, version: str) -> None:
    """As an installer does."""
    info = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")


def test_each_build_that_is_there_is_found_with_its_version(installed: Path) -> None:
    for name in (*BUILDS, "tensorflow-estimator", "keras"):
        note(installed, name, "2.13.1")
    assert installed_builds() == dict.fromkeys(BUILDS, "2.13.1")


def test_a_package_without_an_installers_note_is_not_known(installed: Path) -> None:
    (installed / "tensorflow").mkdir()
    (installed / "tensorflow" / "__init__.py").write_text("raise SystemExit('imported')")
    assert installed_builds() == {}
