from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from pipediag.encoding.text import visible
from pipediag.reporters.html import inline_script
from pipediag.reporters.html import page as html
from pipediag.reporters.words import labels
from pipediag.session.embeddings import Embedding
from pipediag.session.model import Session
from tests import factories, records
from tests.reporters import devices, sessions, trial_sessions
from tests.reporters.html.pages import Element, Page
from tests.rules.sessions import make_ids

SESSIONS: dict[str, Callable[[], Session]] = {
    "input-bound": factories.make_session,
    "compute-bound": factories.make_compute_bound_session,
    "on a GPU": lambda: factories.make_session(devices=[devices.make_gpu()]),
    "nothing measured": sessions.nothing_measured,
    "hostile": sessions.hostile,
    "enormous": sessions.enormous,
    "everything tried": trial_sessions.everything_tried,
    "no budget": trial_sessions.no_budget,
    "lost child": trial_sessions.lost_child,
    "pipeline only": trial_sessions.pipeline_only,
}
every_session = pytest.mark.parametrize("name", SESSIONS)

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


@cache
def written(name: str) -> str:
    """The largest take seconds to write."""
    return html.render(SESSIONS[name]())


@cache
def page_named(name: str) -> Page:
    return Page(written(name))


def headings(page: Page) -> list[str]:
    return [heading.text for heading in page.find("h2")]


@every_session
def test_every_section_is_there_and_every_tag_closed(name: str) -> None:
    page = page_named(name)

    assert set(SECTIONS) <= set(headings(page))
    assert len(page.find("h1")) == 1


@every_session
def test_fetches_nothing(name: str) -> None:
    page = page_named(name)

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
def test_only_the_script_of_ours_runs(name: str) -> None:
    page = page_named(name)

    [running] = page.running_scripts()
    assert running.text == inline_script.script()
    digest = base64.b64encode(hashlib.sha256(running.text.encode()).digest()).decode()
    [policy] = [
        str(one.attributes["content"])
        for one in page.find("meta")
        if one.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert f"script-src 'sha256-{digest}';" in policy
    assert "default-src 'none'" in policy
    assert "unsafe-inline" not in policy.split("style-src")[0]
    kinds = {script.attributes.get("type") for script in page.find("script")}
    assert kinds <= {None, "application/json", "text/plain"}
    handlers = [
        name for item in all_elements(page.root) for name in item.attributes if name[:2] == "on"
    ]
    assert handlers == []


def all_elements(element: Element) -> list[Element]:
    return [element, *(found for child in element.children for found in all_elements(child))]


@every_session
def test_drawings_and_tables_have_names(name: str) -> None:
    page = page_named(name)

    for table in page.find("table"):
        assert table.find("caption")
    for drawing in page.find("svg"):
        hidden = drawing.attributes.get("aria-hidden") == "true"
        part_of_another = "viewbox" in drawing.attributes and not drawing.attributes.get("role")
        labelled = "aria-label" in drawing.attributes or "aria-labelledby" in drawing.attributes
        assert hidden or part_of_another or (drawing.attributes.get("role") == "img" and labelled)


@every_session
def test_ids_are_unique_and_labels_point_at_them(name: str) -> None:
    elements = all_elements(page_named(name).root)

    ids = [element.attributes["id"] for element in elements if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in elements:
        for target in (element.attributes.get("aria-labelledby") or "").split():
            assert target in ids


def test_hostile_text_stays_text() -> None:
    page = page_of(sessions.hostile())

    assert page.find("img") == []
    assert page.find("h1")[0].text == visible(sessions.HOSTILE)
    assert "{{ 7 * 7 }}" in page.root.words()


def test_the_contents_lead_to_every_section() -> None:
    page = page_of(factories.make_session(run=factories.make_run()))

    [contents] = page.find("nav")
    links = [(one.attributes["href"] or "")[1:] for one in contents.find("a")]
    titles = [one.attributes["id"] for one in page.find("h2") if one.attributes.get("id")]
    assert links == titles
    assert len(links) > 6


def test_the_script_is_plain_ascii_and_ends_no_element() -> None:
    text = str(inline_script.script())

    assert text.isascii()
    assert "</" not in text
    assert "<!--" not in text
    assert len(text) < 18_000


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


def test_what_the_consumer_alone_told_is_more_than_waiting() -> None:
    wait = records.make_input_wait(method="differential", contention="cpu")
    assert labels.COST_BESIDE_WAITING in html.render(factories.make_session(input_wait=wait))
    assert labels.COST_BESIDE_WAITING not in html.render(factories.make_session())


def test_pipeline_marks_the_bottleneck_and_what_tensorflow_did() -> None:
    page = page_of(factories.make_session())

    table = next(item for item in page.find("table") if item.attributes.get("class") == "pipeline")
    rows = {row.find("th")[0].words(): row for row in table.find("tbody")[0].find("tr")}
    [marked] = [name for name in rows if "bottleneck" in name]
    assert "map(parse)" in marked
    assert "train.py:12" in marked
    assert "ds = ds.map(parse)" in marked
    assert any("inserted by TensorFlow" in name for name in rows)


def test_a_bound_is_called_one() -> None:
    [trial] = trials_of(page_of(factories.make_session()))

    assert words_of(trial) == "Not tried at most 2.00x"


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

    badges = {
        item.text: item.attributes["class"]
        for item in page.find("span")
        if str(item.attributes.get("class")).startswith("badge")
    }
    assert badges["slowest here"] == "badge"
    rows = [str(row.attributes.get("class")) for row in page.find("tr")]
    assert not any("bottleneck" in row for row in rows)
    assert any("slowest" in row for row in rows)


def test_shares_of_the_pipeline_are_not_said_to_be_of_the_step() -> None:
    captions = [item.words() for item in page_of(factories.make_session()).find("caption")]
    [caption] = [words for words in captions if "Operations of the pipeline" in words]
    assert "shares are of the own time of all operations" in caption


def test_the_mean_leads_as_the_table_adds_up_to_it() -> None:
    steps = records.make_steps(mean_ms=20.7, median_ms=4.87)
    words = page_of(factories.make_session(steps=steps)).root.words()
    assert "The mean step, 20.7" in words
    assert "Few long steps dominate" in words
    assert "Few long steps" not in page_of(factories.make_session()).root.words()


def test_where_the_loops_time_goes_is_said() -> None:
    loop = factories.make_loop(time=factories.make_loop_time())
    words = page_of(factories.make_session(loops=[loop])).root.words()
    assert "15.0\N{NO-BREAK SPACE}% in steps; 80" in words


def words_of(element: Element) -> str:
    return " ".join(element.words().split())


def trials_of(page: Page) -> list[Element]:
    """The outcomes in the cards, in their order."""
    return [
        item for item in page.find("div") if (item.attributes.get("class") or "")[:6] == "trial "
    ]


def section(page: Page, heading: str) -> Element:
    [found] = [
        item
        for item in page.find("section")
        if any(title.text == heading for title in item.find("h2"))
    ]
    return found


def test_what_was_measured_stands_beside_the_verdict() -> None:
    page = page_of(trial_sessions.everything_tried())

    verdict = words_of(page.find("section")[0])
    assert "3.10x" in verdict
    assert "[2.90, 3.30]" in verdict
    assert "with 2 changes:" in verdict
    assert "batch(128) in line 13 (changes a hyper-parameter, so retune)" in verdict


def test_each_card_shows_its_trial_and_its_rounds() -> None:
    outcomes = trials_of(page_of(trial_sessions.everything_tried()))

    assert [item.find("strong")[0].text for item in outcomes] == [
        "Confirmed",
        "Confirmed",
        "Confirmed",
        "Not tried",
        "Inconclusive",
        "Refuted",
    ]
    first, last = words_of(outcomes[0]), words_of(outcomes[-1])
    assert "1.94x [1.88, 2.01] 8 block pairs" in first
    assert "The shuffle starts anew in each block." in first
    assert "This advice does nothing here." in last
    drawn = [(path.attributes["d"] or "").count("M") for i in outcomes for path in i.find("path")]
    assert drawn == [8, 6, 8, 4, 8]


def test_says_what_was_left_out_and_what_was_not_tried() -> None:
    words = words_of(section(page_of(trial_sessions.everything_tried()), "What was tried"))

    assert "5 changes tried on the training loop itself, in 52.4 s of the 60.0 s" in words
    assert "cache() after the map in line 12:" in words
    assert "With the parallel map it gains nothing." in words
    assert "A random map runs one element at a time random-map train.py:12 1.30x" in words
    assert "calls a random function" in words


def test_no_time_for_trials_is_said() -> None:
    page = page_of(trial_sessions.no_budget())

    assert "No change was tried: No time for trials was given" in words_of(page.find("section")[0])
    assert "16 parallel calls" in words_of(section(page, "What was tried"))


def test_a_process_that_was_lost_leaves_what_it_had_shown() -> None:
    page = page_of(trial_sessions.lost_child())

    assert "1.94x" in words_of(page.find("section")[0])
    assert "killed by SIGKILL" in words_of(section(page, "What was tried"))


def test_the_pipeline_alone_is_not_called_training() -> None:
    page = page_of(trial_sessions.pipeline_only())

    assert "Estimated 4.16x from the pipeline alone, without training, with 1 change" in words_of(
        page.find("section")[0]
    )
    assert "Measured" not in words_of(page.find("section")[0])
    [trial] = map(words_of, trials_of(page))
    assert "8 block pairs of the pipeline alone" in trial
    assert "estimated 4.16x" in trial
    assert "The pipeline alone became 11 to 19 times as fast" in trial
    assert "Bold line: a step, estimated at 4.16x" in trial


def test_what_makes_results_wrong_stays_found_whatever_it_costs_to_mend() -> None:
    wrong = factories.make_finding(
        subject="correctness", edit=trial_sessions.CACHE, trial=trial_sessions.REFUTED
    )
    page = page_of(factories.make_session(findings=[wrong], trials=trial_sessions.make_run()))

    shown = words_of(section(page, "Findings"))
    assert "Found error" in shown
    assert "Price costs no speed that could be measured" in shown
    assert "Not worth it here" not in shown
    assert "Refuted" not in shown


def test_three_phases_with_intervals_or_reasons() -> None:
    title = SECTIONS[0]
    full = words_of(section(page_of(trial_sessions.everything_tried()), title))
    lacking = words_of(section(page_of(trial_sessions.no_budget()), title))

    assert "Consumer alone, on one repeated batch 30 steps 3.00 ms 2.90 to 3.10 ms" in full
    assert "Pipeline alone, nothing consuming 4 blocks 9.80 ms 9.60 to 10.0 ms" in full
    assert "they overlap, and the pipeline sets the pace" in full
    assert "Pipeline alone, nothing consuming No time for trials was given" in lacking


def test_a_template_of_a_section_bears_the_name_of_a_field() -> None:
    """Any other one would never be shown."""
    templates = list((Path(html.__file__).parent / "templates" / "sections").iterdir())
    assert templates
    assert {path.name.removesuffix(".html.j2") for path in templates} <= set(Session.model_fields)


def test_what_the_parts_of_a_step_cost_stands_behind_the_tables() -> None:
    cost = factories.make_embedding_cost(("update", 8.0), ("rest", 2.0), notes=["A note on XLA."])
    tables = [factories.make_embedding()]
    told = factories.make_session(embeddings=tables, embedding_cost=cost)
    untold = factories.make_session(embeddings=tables, embedding_cost_missing="No profile.")

    words = page_of(told).root.words()
    assert "optimizer's update" in words
    assert "A note on XLA." in words
    assert "What each part of a step costs is not known: No profile." in (
        page_of(untold).root.words()
    )


@pytest.mark.parametrize(
    ("table", "first"),
    [
        (factories.make_embedding(), False),
        (factories.make_embedding(table_bytes=10_000_000), True),
        (factories.make_embedding(ids=make_ids(outside=3)), True),
    ],
)
def test_large_tables_and_wrong_ids_stand_before_the_findings(
    table: Embedding, first: bool
) -> None:
    page = page_of(factories.make_session(embeddings=[table]))
    titles = [heading.attributes.get("id") for heading in page.find("h2")]

    assert titles.count("embeddings-title") == 1
    assert (titles.index("embeddings-title") < titles.index("findings-title")) is first


def test_a_large_table_has_its_memory_and_what_would_save_some() -> None:
    large = factories.make_embedding(
        layer="items", table_bytes=256_000_000, slot_bytes=512_000_000, gradient="sparse"
    )
    page = page_of(factories.make_session(embeddings=[large]))

    assert "Memory" in [heading.text for heading in page.find("h3")]
    captions = [caption.text for caption in page.find("caption")]
    assert any("would leave of items on the device" in caption for caption in captions)
    small = page_of(factories.make_session(embeddings=[factories.make_embedding()]))
    assert "Memory" not in [heading.text for heading in small.find("h3")]


def test_a_wait_for_first_batches_shows_what_goes_on_meanwhile_and_where() -> None:
    row = factories.make_part(
        "epoch_start",
        4.0,
        line=20,
        loop_id="loop_0",
        waits_for="`shuffle` fills with what `map` makes",
        waits_for_file=records.SCRIPT,
        waits_for_line=14,
    )
    text = html.render(factories.make_session(run=factories.make_run(parts=[row])))
    assert re.search(r", while <code>shuffle</code> fills with what .*train\.py:14", text)
