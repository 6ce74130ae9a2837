from __future__ import annotations

import pytest

from pipediag.doctor import checks, clocks
from pipediag.doctor.framework import Imported, Installed


@pytest.fixture(autouse=True)
def no_sleep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "SLEEPS", 1)
    monkeypatch.setattr(checks.framework, "installed", lambda: Installed({"tensorflow-cpu": "2"}))


def test_every_check_is_worded() -> None:
    made = list(checks.all_checks(ask_tensorflow=False))
    assert len({check.name for check in made}) == len(made)
    assert all(check.found for check in made)
    assert all(check.follows and check.do for check in made if check.state != "ok")
    assert "Import" not in {check.name for check in made}


def test_tensorflow_is_asked_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.framework, "import_in_child", lambda: Imported("2.21.0", False, []))
    made = {check.name: check for check in checks.all_checks(ask_tensorflow=True)}
    assert made["Import"].found == "TensorFlow 2.21.0 imports."


def test_tensorflow_that_is_not_installed_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checks.framework, "installed", lambda: Installed({}))
    monkeypatch.setattr(
        checks.framework, "import_in_child", lambda: pytest.fail("nothing there to import")
    )
    made = [check.name for check in checks.all_checks(ask_tensorflow=True)]
    assert made[:2] == ["TensorFlow", "GPU"]
