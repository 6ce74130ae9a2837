from __future__ import annotations

from urllib.parse import urlsplit

import pytest

from pipediag.encoding.sarif import LONGEST_TEXT, message, uri


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("Trial: 2.00x [1.90, 2.10].", "Trial: 2.00x [1.90, 2.10]."),
        ("[here](https://evil.example)", "[here] (https://evil.example)"),
        ("[here\\](1)", "[here\\] (1)"),
        ("{0} of {x}", "{{0}} of {{x}}"),
        ("two\nlines\u202e", "two lines\\u202e"),
    ],
)
def test_a_message_is_text(text: str, written: str) -> None:
    assert message(text) == written


def test_a_message_has_an_end() -> None:
    assert len(message("x" * 100_000)) == LONGEST_TEXT


@pytest.mark.parametrize(
    ("file", "written"),
    [
        ("src/train.py", "src/train.py"),
        ("my src/a#b?c.py", "my%20src/a%23b%3Fc.py"),
        ("/data/train.py", "file:///data/train.py"),
        ("//evil.example/x", "file:///evil.example/x"),
        ("javascript:alert(1)", "javascript%3Aalert%281%29"),
        ("https://evil.example", "https%3A//evil.example"),
        ("caf\udce9.py", "caf%5Cudce9.py"),
    ],
)
def test_a_path_is_no_address(file: str, written: str) -> None:
    assert uri(file) == written
    address = urlsplit(uri(file))
    assert address.scheme in ("", "file")
    assert not address.netloc
