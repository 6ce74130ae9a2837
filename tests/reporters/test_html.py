from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from pipediag.reporters import html
from pipediag.session.model import Session
from tests import factories
from tests.reporters import devices, sessions
from tests.reporters.pages import Element, Page

SESSIONS: dict[str, Callable[[], Session]] = {
    "input-bound": factories.make_session,
    "compute-bound": factories.make_compute_bound_session,
    "on a GPU": lambda: factories.make_session(devices=[devices.make_gpu()]),
    "nothing measured": sessions.nothing_measured,
    "hostile": sessions.hostile,
    "enormous": sessions.enormous,
}
every_session = pytest.mark.parametrize("make", SESSIONS.values(), ids=SESSIONS)

SECTIONS = [
    "Where a step\N{RIGHT SINGLE QUOTATION MARK}s time goes",
    "The input pipeline",
    "Findings",
    "The steps",
    "Device idle time",
    "The host",
    "The run",
]


def page_of(session: Session) -> Page:
    return Page(html.render(session))


def headings(page: Page) -> list[str]:
    return [heading.text for heading in page.find("h2")]


@every_session
def test_every_section_is_there_and_every_tag_closed(make: Callable[[], Session]) -> None:
    page = page_of(make())

    assert set(SECTIONS) <= set(headings(page))
    assert len(page.find("h1")) == 1


@every_session
def test_stays_under_the_size_that_a_mail_or_an_artifact_viewer_bears(
    make: Callable[[], Session],
) -> None:
    assert len(html.render(make()).encode()) < html.MAX_BYTES


@every_session
def test_fetches_nothing(make: Callable[[], Session]) -> None:
    page = page_of(make())

    fetching = [
        value
        for tag in ("link", "img", "script", "iframe", "object", "use", "image", "source")
        for element in page.find(tag)
        for name, value in element.attributes.items()
        if name in ("src", "href", "xlink:href", "data") and not (value or "").startswith("data:")
    ]
    assert fetching == []
    [style] = page.find("style")
    assert not re.search(r"@import|url\((?!#)", style.text)


@every_session
def test_has_no_script_that_runs(make: Callable[[], Session]) -> None:
    page = page_of(make())

    [data] = page.find("script")
    assert data.attributes["type"] == "application/json"
    handlers = [
        name for item in all_elements(page.root) for name in item.attributes if name[:2] == "on"
    ]
    assert handlers == []


def all_elements(element: Element) -> list[Element]:
    return [element, *(found for child in element.children for found in all_elements(child))]


@every_session
def test_drawings_and_tables_have_names(make: Callable[[], Session]) -> None:
    page = page_of(make())

    for table in page.find("table"):
        assert table.find("caption")
    for drawing in page.find("svg"):
        hidden = drawing.attributes.get("aria-hidden") == "true"
        part_of_another = "viewbox" in drawing.attributes and not drawing.attributes.get("role")
        labelled = "aria-label" in drawing.attributes or "aria-labelledby" in drawing.attributes
        assert hidden or part_of_another or (drawing.attributes.get("role") == "img" and labelled)


@every_session
def test_ids_are_unique_and_labels_point_at_them(make: Callable[[], Session]) -> None:
    elements = all_elements(page_of(make()).root)

    ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in elements:
        for target in (element.attributes.get("aria-labelledby") or "").split():
            assert target in ids


def test_hostile_text_stays_text() -> None:
    page = page_of(sessions.hostile())

    assert page.find("img") == []
    assert page.find("h1")[0].text == sessions.HOSTILE
    assert "{{ 7 * 7 }}" in page.root.words()


def test_the_embedded_session_is_the_session() -> None:
    session = sessions.hostile()
    [data] = page_of(session).find("script")

    assert Session.model_validate(json.loads(data.text)) == session


def test_says_reasons_where_nothing_was_measured() -> None:
    session = sessions.nothing_measured()
    words = page_of(session).root.words()

    for reason in (
        "no-steps-reason",
        "no-breakdown-reason",
        "no-pipeline-reason",
        "no-host-reason",
    ):
        assert reason in words
    assert "None" not in " ".join(table.words() for table in page_of(session).find("dl"))
    assert headings(page_of(session)).index("The run") == 0


def test_breakdown_bar_has_a_table_twin_with_intervals() -> None:
    page = page_of(factories.make_session())

    table = next(item for item in page.find("table") if item.attributes.get("class") == "breakdown")
    rows = [[cell.words() for cell in row.children] for row in table.find("tbody")[0].find("tr")]
    assert "Waiting for input" in rows[0][0]
    assert [cell.replace("\xa0", " ").strip() for cell in rows[0][1:4]] == [
        "7.00 ms",
        "70.0 %",
        "69.0 to 71.0 %",
    ]


def test_pipeline_marks_the_bottleneck_and_what_tensorflow_did() -> None:
    page = page_of(factories.make_session())

    table = next(item for item in page.find("table") if item.attributes.get("class") == "pipeline")
    rows = {row.find("th")[0].words(): row for row in table.find("tbody")[0].find("tr")}
    [marked] = [name for name in rows if "bottleneck" in name]
    assert "map(parse)" in marked
    assert "train.py:12" in marked
    assert "ds = ds.map(parse)" in marked
    assert any("inserted by TensorFlow" in name for name in rows)


def test_a_prediction_is_called_one() -> None:
    words = page_of(factories.make_session()).root.words()

    assert "2.00x predicted, not tried" in words


def test_states_how_many_steps_were_drawn() -> None:
    words = page_of(sessions.enormous()).root.words()

    assert "20,000 steps drawn as 500 strokes" in words


def test_diagnosed_loop_is_marked_among_the_others() -> None:
    other = factories.make_loop(id="loop_1", role="preview", diagnosed=False, keras=None)
    page = page_of(factories.make_session(loops=[factories.make_loop(), other]))

    loops = [row.words() for row in page.find("tr") if "Keras training" in row.words()]
    assert len(loops) == 1
    assert "diagnosed" in loops[0]
    assert any("Keras preview" in row.words() for row in page.find("tr"))


def test_the_slowest_operation_is_no_bottleneck_where_training_does_not_wait_for_it() -> None:
    page = page_of(factories.make_compute_bound_session())

    badges = [
        item.text for item in page.find("span") if item.attributes.get("class") == "badge strong"
    ]
    assert badges == ["slowest here", "diagnosed"]
