"""What a newer minor version wrote is read, and what is not known of it is said."""

from __future__ import annotations

import copy
import dataclasses
import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, get_args, get_type_hints

import jsonschema
import pytest
from pydantic import BaseModel

from pipediag.errors import PipediagError
from pipediag.session import newer
from pipediag.session.model import SCHEMA_VERSION, Session
from pipediag.session.schema import session_schema
from pipediag.session.store import MAJOR, MINOR, dump_session, load_session
from tests.encoding.mutations import changed, parts, replaced_by
from tests.encoding.poisoned import CLEAN, session_content
from tests.encoding.test_malformed_sessions import shown_everywhere
from tests.factories import make_finding, make_session

NEWER = f"{MAJOR}.{MINOR + 7}"
FUTURE = "word_of_the_future"
Place = tuple[str | int, ...]


def written(content: dict[str, Any], folder: Path, version: str = NEWER) -> Path:
    file = folder / "session.json"
    file.write_text(json.dumps({**content, "schema_version": version}), encoding="utf-8")
    return file


def plain(session: Session) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(dump_session(session))
    return content


def places_of_words() -> Iterator[Place]:
    """Each value and key of a full session that the schema takes from a closed list."""
    content = full()
    validator = jsonschema.Draft202012Validator(session_schema())
    for place in _texts(content, ()):
        changed = replaced(content, place)
        if not validator.is_valid(changed):
            yield place


def full() -> dict[str, Any]:
    """A session in which every section is there, with one change of each kind in an edit."""
    content = session_content(CLEAN)
    changes = [session_content(CLEAN, choice=number) for number in range(7)]
    content["findings"][0]["edit"]["changes"] = [
        other["findings"][0]["edit"]["changes"][0] for other in changes
    ]
    content["findings"][0]["trial"]["state"] = "confirmed"
    return {**content, "schema_version": NEWER}


def _texts(value: Any, place: Place) -> Iterator[Place]:
    if isinstance(value, str):
        yield place
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _texts(item, (*place, number))
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _texts(item, (*place, key))
    if place == ("breakdown",):
        yield from ((*place, key, FUTURE) for key in value)


def replaced(content: dict[str, Any], place: Place) -> dict[str, Any]:
    """The content with a word of the future there; for a key, where it is itself the last."""
    changed = copy.deepcopy(content)
    *above, last = place
    holder: Any = changed
    if last == FUTURE:
        *above, last = above
    for key in above:
        holder = holder[key]
    if place[-1] == FUTURE:
        holder[FUTURE] = holder.pop(last)
    else:
        holder[last] = FUTURE
    return changed


PLACES = list(places_of_words())


def test_the_places_are_those_of_all_closed_lists() -> None:
    assert len(PLACES) >= 40
    assert ("loops", 0, "role") in PLACES
    assert ("findings", 0, "edit", "changes", 3, "do") in PLACES


@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_an_unknown_word_anywhere_is_read_shown_and_said(place: Place, tmp_path: Path) -> None:
    content = replaced(full(), place)

    session = load_session(written(content, tmp_path))

    assert FUTURE in session.notes[0]
    assert f"schema version {NEWER}" in session.notes[0]
    assert session.notes[1:] == content["notes"]
    assert shown_everywhere(tmp_path, content)


@pytest.mark.parametrize("version", [SCHEMA_VERSION, str(MAJOR)])
@pytest.mark.parametrize("place", PLACES, ids=lambda place: ".".join(map(str, place)))
def test_the_present_version_and_older_ones_have_no_other_words(
    place: Place, version: str, tmp_path: Path
) -> None:
    with pytest.raises(PipediagError, match="not a valid session"):
        load_session(written(replaced(full(), place), tmp_path, version))


def test_a_newer_session_without_anything_unknown_says_nothing(tmp_path: Path) -> None:
    said: list[str] = []

    session = load_session(written(plain(make_session()), tmp_path), said.append)

    assert session == make_session(schema_version=NEWER)
    assert said == []


def test_unknown_keys_are_said_once_with_their_place(tmp_path: Path) -> None:
    content = plain(make_session(findings=[make_finding(), make_finding()]))
    content["key_of_the_future"] = 1
    for finding in content["findings"]:
        finding["cost"] = 3
    said: list[str] = []

    session = load_session(written(content, tmp_path), said.append)

    assert session.notes[0] == (
        f"The session has schema version {NEWER}, and this pipediag knows {SCHEMA_VERSION}. Not "
        'known here: the key "key_of_the_future"; the key "findings[].cost". Upgrade pipediag to '
        "see all of it."
    )
    assert said == [f"{tmp_path / 'session.json'}: {session.notes[0]}"]


def test_time_of_an_unknown_class_is_not_attributed(tmp_path: Path) -> None:
    content = plain(make_session())
    content["breakdown"]["network"] = {"ms": 2.0, "percent": 20.0, "ci95_percent": [19.0, 21.0]}
    content["breakdown"]["input_wait"]["percent"] -= 20.0
    before = content["breakdown"]["unattributed"]

    session = load_session(written(content, tmp_path))

    assert session.breakdown is not None
    rest = session.breakdown["unattributed"]
    assert (rest.ms, rest.percent) == (before["ms"] + 2.0, before["percent"] + 20.0)
    assert rest.ci95_percent[1] == before["ci95_percent"][1] + 21.0
    assert sum(share.percent for share in session.breakdown.values()) == pytest.approx(100.0)


def test_an_edit_of_which_one_change_is_unknown_is_left_out_whole(tmp_path: Path) -> None:
    content = full()
    content["findings"][0]["edit"]["changes"][1]["do"] = "shard"

    session = load_session(written(content, tmp_path))

    assert session.findings[0].edit is None
    assert '"findings[].edit.changes[].do" is "shard", left out' in session.notes[0]


def test_a_cause_of_the_future_is_shown_as_it_is_called(tmp_path: Path) -> None:
    content = plain(make_session())
    content["devices"][0]["gaps"][0]["cause"] = "checkpoint"

    session = load_session(written(content, tmp_path))

    assert session.devices[0].gaps[0].cause == "checkpoint"
    assert '"devices[].gaps[].cause" is "checkpoint", shown' in session.notes[0]


def test_many_unknown_things_are_counted(tmp_path: Path) -> None:
    content = {**plain(make_session()), **{f"key_{number}": 1 for number in range(1000)}}

    note = load_session(written(content, tmp_path)).notes[0]

    assert "and 992 more" in note
    assert len(note) < 500


def test_what_is_of_the_wrong_kind_is_refused_as_ever(tmp_path: Path) -> None:
    with pytest.raises(PipediagError, match=r"notes"):
        load_session(written({**plain(make_session()), "notes": {"a": 1}}, tmp_path))


@pytest.mark.parametrize("other", [[], {}, None, 3, FUTURE, [[FUTURE]], {FUTURE: [FUTURE]}])
def test_no_part_of_another_kind_is_an_error_of_ours(other: Any, tmp_path: Path) -> None:
    for place in parts():
        with suppress(PipediagError):
            load_session(written(changed([place], replaced_by(other)), tmp_path))


def test_what_is_read_instead_is_a_word_of_its_list() -> None:
    records = {record.__name__: record for record in _records(Session)}
    for place, word in newer.READ_AS.items():
        record, key = place.split(".")
        kind = get_type_hints(records[record])[key]
        assert word in _words(kind), place


def _words(kind: Any) -> set[Any]:
    return {kind}.union(*map(_words, get_args(kind))) if get_args(kind) else {kind}


def _records(kind: Any) -> set[type]:
    found: set[type] = set()
    if isinstance(kind, type) and (issubclass(kind, BaseModel) or dataclasses.is_dataclass(kind)):
        found.add(kind)
        for hint in get_type_hints(kind).values():
            found |= _records(hint)
    for part in get_args(kind):
        found |= _records(part)
    return found
