from __future__ import annotations

from pipediag.encoding.terminal import LONGEST_LINE, lines, one_line, printable


def test_one_line_stays_one() -> None:
    assert one_line("  a \r\n\t b\x0bc  d") == "  a b c  d"
    assert one_line("\n::error::x") == r" \x3a:error::x"
    assert one_line("a\u2028b\x85c") == r"a\u2028b\x85c"


def test_each_text_is_a_line() -> None:
    assert lines(["one", "two\nGate: passed"]) == "one\ntwo Gate: passed\n"


def test_a_line_has_an_end() -> None:
    assert len(one_line("\x1b" * 1_000_000)) == LONGEST_LINE


def test_a_message_keeps_its_lines() -> None:
    assert printable("one\n  two\x1b]0;t\x07\n ::error::x") == (
        "one\n  two\\x1b]0;t\\x07\n \\x3a:error::x"
    )
