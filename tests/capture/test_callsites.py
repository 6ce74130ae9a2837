from __future__ import annotations

import operator
import sys
import threading
from pathlib import Path
from types import CodeType

import pytest

from pipediag.capture import callsites
from pipediag.capture.callsites import CallSite, call_site, is_pipediags, is_users, package_of

SITE = "/opt/python/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("filename", "package"),
    [
        (f"{SITE}/keras/src/trainers/trainer.py", "keras"),
        (f"{SITE}/six.py", "six"),
        ("/usr/lib/python3/dist-packages/tensorflow/a.py", "tensorflow"),
        ("/home/me/keras/train.py", None),
        ("/home/me/site-packages", None),
    ],
)
def test_package_of_an_installed_file(filename: str, package: str | None) -> None:
    assert package_of(filename) == package


@pytest.mark.parametrize(
    ("filename", "users"),
    [
        ("/home/me/train.py", True),
        ("relative/train.py", True),
        (f"{SITE}/somebodys_models/data.py", True),
        (f"{SITE}/tensorflow/python/a.py", False),
        (f"{SITE}/tf_keras/src/a.py", False),
        (f"{SITE}/jax/a.py", False),
        (f"{SITE}/torch/utils/data/dataloader.py", False),
        (f"{SITE}/tensorflow_datasets/core/reader.py", False),
        (f"{SITE}/tree/__init__.py", False),  # TensorFlow Datasets makes pipelines through it
        (f"{SITE}/wrapt/wrappers.py", False),  # which decorates its functions
        (f"{SITE}/etils/epath/gpath.py", False),
        (f"{SITE}/tensorflow_recommenders/experimental/models/ranking.py", False),
        (f"{SITE}/keras_hub/src/utils/pipeline_model.py", False),
        (f"{SITE}/keras_nlp/src/utils/pipeline_model.py", False),
        (f"{SITE}/numpy/lib/iter.py", False),
        (f"{SITE}/tqdm/std.py", False),
        (threading.__file__, False),
        (callsites.__file__, False),
        ("<frozen runpy>", False),
        ("<string>", False),
        ("/tmp/__autograph_generated_filek3.py", False),
    ],
)
def test_whose_code_it_is(filename: str, users: bool) -> None:
    assert is_users(filename) is users


def test_pipediags_own_files() -> None:
    assert is_pipediags(callsites.__file__)
    assert not is_pipediags(str(Path(callsites.__file__).parents[2] / "pipediagnosis.py"))
    assert not is_pipediags(__file__)


def compiled(filename: str, source: str) -> CodeType:
    return compile(source, filename, "exec")


def test_the_innermost_line_of_the_user(tmp_path: Path) -> None:
    names: dict[str, object] = {"call_site": call_site}
    exec(compiled("/home/me/train.py", "\n\ndef run():\n    return call_site()\n"), names)

    assert eval("run()", names) == CallSite("/home/me/train.py", 4, "run", by_framework=False)


@pytest.mark.parametrize(
    ("package", "by_framework"),
    [("keras", True), ("tensorflow_datasets", True), ("torch", True), ("tensorflow", False)],
)
def test_a_call_that_a_framework_makes(package: str, by_framework: bool) -> None:
    names: dict[str, object] = {"call_site": call_site}
    exec(compiled(f"{SITE}/{package}/a.py", "def fit():\n    return call_site()\n"), names)
    exec(compiled("/home/me/train.py", "def run():\n\n    return fit()\n"), names)

    assert eval("run()", names) == CallSite("/home/me/train.py", 3, "run", by_framework)


def test_a_fit_of_the_torch_backend_is_the_users_line() -> None:
    names: dict[str, object] = {"call_site": call_site}
    loader = f"{SITE}/torch/utils/data/dataloader.py"
    trainer = f"{SITE}/keras/src/backend/torch/trainer.py"
    exec(compiled(loader, "def fetch():\n    return call_site()\n"), names)
    exec(compiled(trainer, "def fit():\n    return fetch()\n"), names)
    exec(compiled("/home/me/train.py", "def run():\n    return fit()\n"), names)

    assert eval("run()", names) == CallSite("/home/me/train.py", 2, "run", by_framework=True)


def test_an_installed_package_of_the_users_own_keeps_its_lines() -> None:
    names: dict[str, object] = {"call_site": call_site}
    exec(compiled(f"{SITE}/my_models/train.py", "def run():\n    return call_site()\n"), names)
    exec(compiled("/home/me/main.py", "def main():\n    return run()\n"), names)

    assert eval("main()", names) == CallSite(f"{SITE}/my_models/train.py", 2, "run", False)


def test_no_users_code_on_the_stack() -> None:
    found: list[CallSite | None] = [CallSite("", 0, "", False)]
    names: dict[str, object] = {"call_site": call_site, "found": found}
    exec(compiled(f"{SITE}/tensorflow/a.py", "def run():\n    found[0] = call_site()\n"), names)

    thread = threading.Thread(target=names["run"])  # type: ignore[arg-type]
    thread.start()
    thread.join()

    assert found == [None]


def test_own_frames_are_left_out() -> None:
    seen = list(map(operator.attrgetter("f_code"), callsites.frames()))

    assert seen[0] is sys._getframe().f_code
    assert callsites.__file__ not in {code.co_filename for code in seen}


def test_a_library_in_a_folder_of_its_own_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = tmp_path / "pillow-11.0.dist-info"
    records.mkdir()
    (records / "RECORD").write_text("PIL/ImageFile.py,sha256=x,1\npillow.libs/a.so,,\nsix.py,,\n")
    monkeypatch.setattr(sys, "path", ["/home/me", str(tmp_path)])
    assert package_of(str(tmp_path / "PIL" / "ImageFile.py")) == "PIL"
    assert package_of(str(tmp_path / "six.py")) == "six"
    assert package_of(str(tmp_path / "mine.py")) is None


def test_the_scripts_own_folder_is_the_users_whatever_lies_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = tmp_path / "mine-1.dist-info"
    records.mkdir()
    (records / "RECORD").write_text("mine.py,,\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    assert package_of(str(tmp_path / "mine.py")) is None
