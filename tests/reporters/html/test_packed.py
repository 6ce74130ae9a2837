from __future__ import annotations

import base64
import gzip

from pipediag.reporters.html.packed import fitting, packed


def test_it_comes_back_and_is_the_same_each_time() -> None:
    text = "index,start_ms\n1,2.5\n" * 200 + "\N{GREEK SMALL LETTER MU}"
    data = packed(text)

    assert gzip.decompress(base64.b64decode(data)).decode() == text
    assert data == packed(text)
    assert len(data) < len(text) / 4


def test_a_smaller_file_may_have_room_where_a_larger_one_has_none() -> None:
    digits = "".join(str(n * n) for n in range(3000))
    small = packed("a")

    kept = fitting([("first", "a"), ("large", digits), ("last", "b")], 2 * len(small))

    assert [one.name for one in kept] == ["first", "last"]
    assert fitting([("first", "a")], 10) == []
