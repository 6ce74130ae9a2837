from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from pipediag.errors import ExitStatus, PipediagError
from pipediag.session.store import dump_session, load_session, save_session
from tests.factories import make_session


def _write(path: Path, **changes: Any) -> Path:
    content = {**json.loads(dump_session(make_session())), **changes}
    path.write_text(json.dumps(content))
    return path


def test_a_session_comes_back_as_it_was(tmp_path: Path) -> None:
    session = make_session()

    file = save_session(session, tmp_path)

    assert file == tmp_path / "session.json"
    assert load_session(tmp_path) == session
    assert load_session(file) == session


def test_writing_leaves_no_other_file_and_a_readable_one(tmp_path: Path) -> None:
    save_session(make_session(), tmp_path)

    assert [entry.name for entry in tmp_path.iterdir()] == ["session.json"]
    mask = os.umask(0)
    os.umask(mask)
    assert stat.S_IMODE((tmp_path / "session.json").stat().st_mode) == 0o666 & ~mask


def test_a_full_disk_keeps_the_old_session_and_leaves_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_session(make_session(wall_s=1.0), tmp_path)

    def full(self: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(PipediagError, match="No space left on device") as refusal:
        save_session(make_session(wall_s=2.0), tmp_path)

    assert refusal.value.status == ExitStatus.USAGE
    assert [entry.name for entry in tmp_path.iterdir()] == ["session.json"]
    assert load_session(tmp_path).wall_s == 1.0


@pytest.mark.parametrize("version", ["2", "1.3", 1, None, "new", "9" * 5_000])
def test_another_version_is_refused(version: object, tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match="has schema version"):
        load_session(_write(tmp_path / "s.json", schema_version=version))


def test_a_session_that_lacks_keys_is_refused_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"schema_version": "1"}')

    with pytest.raises(PipediagError, match=r"pipediag_version: Field required.*more"):
        load_session(tmp_path / "s.json")


def test_a_value_of_the_wrong_kind_is_refused_with_its_place(tmp_path: Path) -> None:
    file = _write(tmp_path / "s.json", verdict={"bottleneck": "network"})

    with pytest.raises(PipediagError, match=r"verdict\.bottleneck"):
        load_session(file)


@pytest.mark.parametrize("text", ["", "{", "null", "[]", "\x00\x01"])
def test_what_is_no_json_object_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text(text)

    with pytest.raises(PipediagError, match=r"is not (JSON|a session)"):
        load_session(tmp_path / "s.json")


def test_what_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match=r"cannot read the session .*session\.json"):
        load_session(tmp_path)


def test_numbers_that_json_lacks_are_written_as_null(tmp_path: Path) -> None:
    text = dump_session(make_session(wall_s=float("nan")))

    assert json.loads(text)["wall_s"] is None
