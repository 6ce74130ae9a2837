"""A file that a stranger wrote may be of any size and depth, and hold any number."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from pipediag.errors import PipediagError
from pipediag.session import parsing
from pipediag.session.parsing import parse_json
from pipediag.session.store import dump_session, load_session
from tests.factories import make_session


@pytest.mark.parametrize(
    "text",
    [
        "NaN",
        "-Infinity",
        "1e308",
        "1e999",
        "-1e400",
        "9" * 30,
        "9" * 10_000,
        "[" * 100_000,
        '{"a":' * 100_000,
        "[1",
        "\x1b",
    ],
    ids=lambda text: text[:12],
)
def test_what_no_session_holds_is_refused_in_one_short_line(text: str, tmp_path: Path) -> None:
    file = tmp_path / "session.json"
    file.write_text(f'{{"schema_version": "1", "wall_s": {text}}}', encoding="utf-8")

    with pytest.raises(PipediagError) as refusal:
        load_session(file)

    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 300 + len(str(file))


def test_the_largest_numbers_of_tensorflow_are_read() -> None:
    largest = 2**63 - 1
    assert parse_json(f"[{largest}, {-largest}, 1e18]".encode()) == [largest, -largest, 1e18]


def test_half_a_character_becomes_its_spelling() -> None:
    assert parse_json(rb'{"\ud800": ["a\udcffb", "\ud83d\ude00"]}') == {
        r"\ud800": [r"a\udcffb", "\U0001f600"]
    }


def test_a_name_that_is_no_utf_8_can_be_written_and_read(tmp_path: Path) -> None:
    name = os.fsdecode(b"tr\xffain.py")
    text = dump_session(make_session(notes=[name]))

    (tmp_path / "session.json").write_bytes(text.encode())
    assert load_session(tmp_path).notes == [r"tr\udcffain.py"]


def test_a_file_that_is_too_large_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "MOST_BYTES", 1 << 20)
    (tmp_path / "session.json").write_bytes(b" " * (1 << 20) + b"{}")

    with pytest.raises(PipediagError, match="larger than 1 MiB"):
        load_session(tmp_path)


def test_a_device_without_an_end_is_not_read_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parsing, "MOST_BYTES", 1 << 20)

    with pytest.raises(PipediagError, match="larger than 1 MiB"):
        load_session(Path("/dev/zero"))


@pytest.mark.timeout(20)
def test_nobody_waits_for_a_pipe_in_place_of_the_session(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "session.json")

    with pytest.raises(PipediagError, match=r"cannot read the session .*it is not a file"):
        load_session(tmp_path)


def test_a_directory_in_place_of_the_session(tmp_path: Path) -> None:
    (tmp_path / "session.json").mkdir()

    with pytest.raises(PipediagError, match="cannot read the session"):
        load_session(tmp_path)


def test_a_name_that_is_too_long(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match="cannot read the session"):
        load_session(tmp_path / ("x" * 5_000))


@pytest.mark.parametrize("version", ["9" * 5_000, "2.\x1b]0;title\x07\n::error::x"])
def test_a_version_of_any_text_is_quoted_in_short(version: str, tmp_path: Path) -> None:
    content = {**json.loads(dump_session(make_session())), "schema_version": version}
    (tmp_path / "session.json").write_text(json.dumps(content), encoding="utf-8")

    with pytest.raises(PipediagError) as refusal:
        load_session(tmp_path)
    assert "\n" not in str(refusal.value)
    assert str(refusal.value).isprintable()
