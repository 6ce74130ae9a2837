from __future__ import annotations

import pytest
from markdown_it import MarkdownIt

from pipediag.encoding import markdown
from pipediag.encoding.visible import visible


@pytest.mark.parametrize(
    "text",
    [
        "a | b",
        "`code` **bold** _it_ ~gone~ $x$",
        "<img src=x> <!-- c --> &lt;",
        "[a](javascript:x) ![b](c)",
        "# heading",
        "- item",
        "1. item",
        "1) item",
        "=== ",
        "> quote",
        "@someone #12 GH-3 https://evil.example www.evil.example a@b.example",
        r"back\slash",
        "\x1b[31m\u202e",
        "70.0 % of 1.5",
    ],
)
def test_it_is_read_as_it_was_written(text: str) -> None:
    html = MarkdownIt("commonmark").enable("table").render(markdown.text(text))
    shown = html.replace(markdown._APART, "")
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        shown = shown.replace(entity, character)
    assert shown == f"<p>{visible(text.strip())}</p>\n"


@pytest.mark.parametrize("mark", ["@someone", "#12", "GH-12", "http://x", "www.x.example"])
def test_what_would_be_linked_is_in_two_parts(mark: str) -> None:
    assert markdown._APART in markdown.text(f"see {mark}")


def test_a_row_has_as_many_cells_as_it_was_given() -> None:
    table = "\n".join(["| a | b |", "|---|---|", markdown.row(["x | y\n| z", "`|`"])])
    html = MarkdownIt("commonmark").enable("table").render(table)
    assert html.count("<td>") == 2


def test_a_heading_is_one_line() -> None:
    assert markdown.heading(3, "a\n# b", "failed") == "### a \\# b: failed"
