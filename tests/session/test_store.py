"""Sessions in files, which a stranger may have written, and the table of their keys."""

from __future__ import annotations

import errno
import json
import os
import stat
from pathlib import Path

import pytest

from pipediag.errors import ExitStatus, PipediagError
from pipediag.session import files
from pipediag.session.files import parse_json, write_text
from pipediag.session.record import to_json
from pipediag.session.schema import PAGE, with_table
from pipediag.session.store import load_runs, load_session, save_session, session_paths
from tests.factories import make_session


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


def test_a_session_that_lacks_keys_is_refused_with_their_names(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"schema_version": "1"}')

    with pytest.raises(PipediagError, match=r"pipediag_version: Field required.*more"):
        load_session(tmp_path / "s.json")


def test_numbers_that_json_lacks_are_written_as_null(tmp_path: Path) -> None:
    text = to_json(make_session(wall_s=float("nan")))

    assert json.loads(text)["wall_s"] is None


@pytest.mark.parametrize(
    "text",
    ["NaN", "1e308", "-1e400", "9" * 10_000, "[" * 100_000, '{"a":' * 100_000, "[1", "\x1b"],
    ids=lambda text: text[:12],
)
def test_what_no_session_holds_is_refused_in_one_short_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text(f'{{"schema_version": "1", "wall_s": {text}}}', encoding="utf-8")

    with pytest.raises(PipediagError) as refusal:
        load_session(file)

    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300 + len(str(file))


def test_half_a_character_becomes_its_spelling() -> None:
    assert parse_json(rb'{"\ud800": ["a\udcffb", "\ud83d\ude00"]}') == {
        r"\ud800": [r"a\udcffb", "\U0001f600"]
    }


def test_a_name_that_is_no_utf_8_can_be_written_and_read(tmp_path: Path) -> None:
    name = os.fsdecode(b"tr\xffain.py")
    text = to_json(make_session(notes=[name]))

    (tmp_path / "session.json").write_bytes(text.encode())
    assert load_session(tmp_path).notes == [r"tr\udcffain.py"]


def test_a_device_without_an_end_is_not_read_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)

    with pytest.raises(PipediagError, match="larger than 1 MiB"):
        load_session(Path("/dev/zero"))


@pytest.mark.timeout(20)
def test_nobody_waits_for_a_pipe_in_place_of_the_session(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "session.json")

    with pytest.raises(PipediagError, match=r"cannot read the session .*it is not a file"):
        load_session(tmp_path)


def test_another_version_is_refused(tmp_path: Path) -> None:
    content = {**json.loads(to_json(make_session())), "schema_version": "2"}
    (tmp_path / "session.json").write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(PipediagError, match=r"schema_version: .*another version of pipediag"):
        load_session(tmp_path)


def with_session(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "session.json").write_text("{}", encoding="utf-8")
    return folder


def test_a_session_stands_for_itself_and_a_directory_of_runs_for_each_in_order(
    tmp_path: Path,
) -> None:
    for name in ("run-10", "run-2", "run-1", "run-1/inner"):
        with_session(tmp_path / name)
    (tmp_path / "notes").mkdir()
    assert [path.name for path in session_paths(tmp_path)] == ["run-1", "run-2", "run-10"]
    for one in (tmp_path / "run-1", tmp_path / "run-1/session.json"):
        assert session_paths(one) == [one]


def test_reports_kept_aside_are_no_runs_beside_the_newest(tmp_path: Path) -> None:
    for name in ("train", "train.1", "train.2", "worker-0", "worker-0.1", "bert-2.0"):
        made = with_session(tmp_path / name)
        numbered = name.rpartition(".")[2].isdecimal() and name != "bert-2.0"
        os.utime(made / "session.json", (9.0, 9.0 - numbered))
    with_session(tmp_path / "train.3")  # the user's own, as it came later
    found = [path.name for path in session_paths(tmp_path)]
    assert found == ["train", "train.3", "bert-2.0", "worker-0"]


def test_a_session_that_is_named_twice_is_one_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("run-1", "run-2"):
        (tmp_path / name).mkdir()
        save_session(make_session(), tmp_path / name)
    (tmp_path / "linked").symlink_to(tmp_path / "run-1")
    monkeypatch.chdir(tmp_path)
    said: list[str] = []
    first, second = Path("run-1"), Path("run-2")
    again = [first / "session.json", tmp_path / "linked", tmp_path]

    assert [path for path, _ in load_runs([first, second, *again], tell=said.append)] == [
        first,
        second,
    ]
    [warning] = said
    assert "5 of the 7 sessions" in warning


def test_makes_the_directory_and_writes_utf_8_without_translating_line_ends(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "report.html"

    write_text(path, "größe\n")

    assert path.read_bytes() == "größe\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) & 0o044 == 0o044 & ~os.umask(os.umask(0o022))


def test_the_committed_page_is_current() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "run python -m pipediag.session.schema"
