"""What the head of the page answers: what, which line, what to change, what it buys, why."""

from __future__ import annotations

from typing import Any

import pytest

from pipediag.facts.order import concluded
from pipediag.reporters.html.page import render
from pipediag.session.findings import CallSpan, SourceExcerpt
from pipediag.session.ledger import RunGain
from pipediag.session.model import HotLine, Session
from pipediag.session.trials import Trial
from tests import factories, records
from tests.reporters import trial_sessions
from tests.reporters.html.pages import Element, Page

SOURCE = SourceExcerpt(
    file=factories.SCRIPT,
    line=12,
    first_line=11,
    lines=["ds = load()", "ds = ds.map(augment).batch(32)", "model.fit(ds)"],
    call=CallSpan(line=12, column=8, end_line=12, end_column=20),
)


def page_of(session: Session) -> Page:
    return Page(render(session))


def head(session: Session) -> Element:
    return page_of(session).find("section")[0]


def words(element: Element) -> str:
    return " ".join(element.words().split())


def of_class(element: Element, tag: str, name: str) -> list[Element]:
    return [e for e in element.find(tag) if name in (e.attributes.get("class") or "").split()]


def sourced(session: Session, **overrides: Any) -> Session:
    verdict = session.verdict.model_copy(update={"source": SOURCE})
    return session.model_copy(update={"verdict": verdict, **overrides})


def test_all_five_are_answered_beside_the_verdict() -> None:
    top = head(sourced(trial_sessions.patched()))

    assert "70 % of each step waits for input" in words(top.find("h1")[0])
    (source,) = of_class(top, "pre", "source")
    (meant,) = of_class(source, "span", "meant")
    assert [mark.words() for mark in meant.find("mark")] == ["map(augment)"]
    (change,) = of_class(top, "pre", "diff")
    assert "num_parallel_calls=16" in change.words()
    said = words(top)
    assert "Measured 3.10x [2.90, 3.30]" in said
    assert "For a step 1.94x [1.88, 2.01]" in said
    assert "Base and change alternated in the running training loop, 8 pairs of blocks" in said


def test_one_number_stands_out() -> None:
    top = head(sourced(trial_sessions.patched()))
    (measured,) = of_class(top, "div", "measured")
    assert [number.text for number in measured.find("strong")] == ["3.10x"]


def test_without_lines_the_code_of_the_call_and_without_that_the_place() -> None:
    session = factories.make_session()
    op = records.make_operation(
        "map_0", "map", file=factories.SCRIPT, line=12, code="ds = ds.map(f).batch(2)"
    )
    known = session.model_copy(
        update={"pipeline": records.make_pipeline(ops=[op], bottleneck_op_id="map_0")}
    )
    assert "map(f)" in words(of_class(head(known), "div", "culprit")[0])
    op = op.model_copy(update={"code": None})
    bare = session.model_copy(
        update={"pipeline": records.make_pipeline(ops=[op], bottleneck_op_id="map_0")}
    )
    assert words(of_class(head(bare), "div", "bare")[0]) == "The line train.py:12"


def test_the_python_behind_the_operation_is_shown() -> None:
    hot = HotLine(file="/p/data.py", line=20, function="fetch", percent=76.0, thread="source")
    op = records.make_operation(
        file=factories.SCRIPT, function=records.make_function(graph_ops={"PyFunc": 1})
    )
    behind = SourceExcerpt(
        file="/p/data.py", line=20, first_line=19, lines=["def fetch(x):", "    sleep(1)"]
    )
    session = sourced(
        factories.make_session(),
        pipeline=records.make_pipeline(ops=[op], bottleneck_op_id="map_0"),
        host=factories.make_host(hot_python=[hot]),
    )
    verdict = session.verdict.model_copy(update={"python_source": behind})
    (shown,) = of_class(head(session.model_copy(update={"verdict": verdict})), "div", "behind")
    said = words(shown)
    assert said.startswith("Its Python /p/data.py:20")
    assert "sleep(1)" in said
    assert "was on that line in 76.0\xa0% of the stack samples" in shown.words()
    assert words(of_class(head(session), "div", "behind")[0]).startswith("Its Python /p/data.py:20")


def test_a_change_of_another_line_says_where() -> None:
    there = factories.make_finding(line=12)
    titles = [
        words(of_class(head(factories.make_session(findings=[one])), "div", "do-first")[0])
        for one in (there, factories.make_finding(line=30))
    ]
    assert titles[0].startswith("What to do first Write")
    assert titles[1].startswith("What to do first train.py:30 Write")


def test_a_figure_of_the_headline_is_not_said_twice() -> None:
    gain = RunGain(
        speedup=1.5, ci95=(1.4, 1.6), before_s=30.0, after_s=20.0, basis="measured", scope="run"
    )
    finding = factories.make_finding(
        edit=trial_sessions.PARALLEL, trial=trial_sessions.CONFIRMED, for_run=gain
    )
    said = words(head(factories.make_session(findings=[finding]))).replace("\xa0", " ")
    assert said.count("1.94x") == 1
    assert said.count("1.50x") == 1


@pytest.mark.parametrize("trial", [trial_sessions.REFUTED, trial_sessions.UNDECIDED])
def test_what_its_trial_left_open_or_refuted_is_nowhere_advised(trial: Trial) -> None:
    finding = factories.make_finding(
        advice="Do this.", edit=trial_sessions.PARALLEL, trial=trial, severity="error"
    )
    page = page_of(
        concluded(factories.make_session(trials=trial_sessions.make_run(), notes=[]), [finding])
    )

    top = words(page.find("section")[0])
    assert "Do this." not in top
    assert "What to try next" in top
    (card,) = page.find("article")
    said = words(card)
    assert "Not worth it here: Do this." in said or "Not advised, as its trial left open" in said
    assert "Found" not in said


def test_a_severe_verdict_without_a_finding_leads_on() -> None:
    session = concluded(factories.make_session(), [])
    said = words(head(session)).replace("\xa0", " ")
    assert "What to try next" in said
    assert "at most 3.33x" in said


def test_nothing_to_gain_says_so() -> None:
    assert "Nothing to change" in words(head(factories.make_compute_bound_session()))


def test_an_estimate_does_not_look_like_a_measurement() -> None:
    classes = [
        of_class(head(session), "div", "measured")[0].attributes["class"]
        for session in (trial_sessions.pipeline_only(), trial_sessions.patched())
    ]
    assert classes == ["measured estimated", "measured"]
    page = page_of(factories.make_session(run=factories.make_run()))
    projected = [span.text for span in of_class(page.root, "span", "estimated")]
    assert "10.0\xa0s" in projected
    assert "2.50\xa0s" not in projected


def test_words_that_only_pipediag_uses_say_what_they_mean() -> None:
    page = page_of(trial_sessions.everything_tried())
    titled = {
        words(element): element.attributes["title"] or ""
        for tag in ("strong", "th")
        for element in page.find(tag)
        if "title" in element.attributes
    }
    assert "lies above 1.03x" in titled["Confirmed"]
    assert "lies below 1.03x" in titled["Refuted"]
    assert "summed over parallel calls" in titled["Own time"]
    assert "room for" in titled["Buffer"]
    assert "`" not in "".join(titled.values())


def test_links_within_the_page_arrive() -> None:
    page = page_of(trial_sessions.everything_tried())
    ids = {
        element.attributes["id"]
        for tag in ("article", "tr", "section", "h2")
        for element in page.find(tag)
        if "id" in element.attributes
    }
    links = {(a.attributes["href"] or "").removeprefix("#") for a in page.find("a")}
    assert "finding-parallel-map-map_0" in links
    assert "operation-map_0" in links
    assert links <= ids


def test_self_checks_stand_with_their_figures() -> None:
    page = page_of(factories.make_session(trials=trial_sessions.make_run(base_step_ms=20.0)))
    (table,) = of_class(page.root, "table", "checks")
    assert "differ" in words(table)
    assert "20.0\xa0ms a step in the trials" in table.words()
