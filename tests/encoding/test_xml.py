from __future__ import annotations

from xml.etree import ElementTree as ET

from pipediag.encoding.xml import LONGEST_TEXT, document, text


def test_a_text_comes_back_as_it_is_shown() -> None:
    root = ET.Element("a", name=text("<b> & \"c\" 'd' ]]> &lt;"))
    ET.SubElement(root, "e").text = text("##[error]x -->")
    again = ET.fromstring(document(root).encode())

    assert again.get("name") == "<b> & \"c\" 'd' ]]> &lt;"
    assert again[0].text == "##[error]x -->"
    assert "##[" not in document(root)


def test_what_xml_forbids_is_spelled_out() -> None:
    assert text("a\x1b\ud800\ufffe\uffffb\u202ec") == r"a\x1b\ud800\ufffe\uffffb\u202ec"


def test_a_text_is_one_line_and_has_an_end() -> None:
    assert text("a\r\n\tb") == "a b"
    assert len(text("x" * 100_000)) == LONGEST_TEXT
