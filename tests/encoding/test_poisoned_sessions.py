"""Every text of a session is a stranger's: none of them may act in any medium."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console

from pipediag.gate.config import GateConfig
from pipediag.gate.evaluation import evaluate
from pipediag.gate.output import render
from pipediag.profiles import dump_trace_report
from pipediag.reporters import json as json_reporter
from pipediag.reporters import markdown
from pipediag.reporters.html import page as html
from pipediag.reporters.perfetto.writer import TraceWriter
from pipediag.reporters.tables import csv as tables
from pipediag.reporters.terminal import summary as terminal
from pipediag.reporters.terminal import trace as trace_terminal
from pipediag.runner.progress import ProgressLine
from pipediag.session.model import Session
from pipediag.session.store import load_session
from pipediag.trials.events import Decided, Trying
from tests.encoding.poisoned import (
    CLEAN,
    POISON,
    acting,
    commands,
    session_content,
    trace_report,
)
from tests.reporters.html.pages import Element, Page

VARIANTS = [*({"choice": choice} for choice in range(9)), {"sections": False, "choice": 3}]
every_variant = pytest.mark.parametrize("variant", VARIANTS, ids=str)
STYLE = re.compile(r"\x1b\[[0-9;]*m")
FORMULA = re.compile(r"[\s\"]*[=+\-@]")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("sessions")


class Pair:
    """The poisoned session and the same one with harmless words."""

    def __init__(self, folder: Path, variant: dict[str, Any]) -> None:
        self.clean = stored(folder, session_content(CLEAN, **variant))
        self.poisoned = stored(folder, session_content(POISON, **variant))


def stored(folder: Path, content: dict[str, Any]) -> Session:
    file = folder / "session.json"
    file.write_text(json.dumps(content), encoding="utf-8")
    return load_session(file)


@pytest.fixture
def pair(folder: Path, variant: dict[str, Any]) -> Pair:
    return Pair(folder, variant)


def gate(session: Session, name: str, config: GateConfig) -> str:
    return render(name, [evaluate(session, config)])


LIMITED = GateConfig(max_input_wait_percent=1, max_overhead_percent=1, fail_on="warn")
both_configs = pytest.mark.parametrize("config", [GateConfig(fail_on="warn"), LIMITED])


@every_variant
@both_configs
@pytest.mark.parametrize("name", ["text", "github"])
def test_the_gate_gives_a_runner_no_other_commands(
    pair: Pair, config: GateConfig, name: str
) -> None:
    clean, poisoned = gate(pair.clean, name, config), gate(pair.poisoned, name, config)

    assert len(commands(poisoned)) == len(commands(clean))
    assert "##[" not in poisoned
    assert poisoned.count("\n") == clean.count("\n")
    assert not acting(poisoned)


@every_variant
@both_configs
def test_an_annotation_has_the_properties_that_we_gave_it(pair: Pair, config: GateConfig) -> None:
    clean, poisoned = (
        [
            re.findall(r"(?:\A::\w+ |,)(\w+)=", line.split("::", 2)[0] or line.rsplit("::", 1)[0])
            for line in commands(gate(session, "github", config))
        ]
        for session in (pair.clean, pair.poisoned)
    )
    assert poisoned == clean


def nodes(tokens: list[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from nodes(token.children or [])


@every_variant
@both_configs
def test_markdown_holds_the_same_elements(pair: Pair, config: GateConfig) -> None:
    parser = MarkdownIt("commonmark").enable("table")
    shapes = []
    for session in (pair.clean, pair.poisoned):
        text = gate(session, "markdown", config)
        assert not acting(text)
        assert commands(text) == []
        found = list(nodes(parser.parse(text)))
        spoken = [node for node in found if node.type in ("text", "text_special")]
        assert not any(re.search(r"[@#]\w|GH-\d|://|www\.", node.content) for node in spoken)
        markup = [node.content for node in found if node.type == "html_inline"]
        assert set(markup) <= {"<!-- -->"}
        shapes.append([n.type for n in found if "text" not in n.type and n.type != "html_inline"])
    assert shapes[0] == shapes[1]


def printed(session: Session, *, width: int, verbose: bool = False, style: bool = False) -> str:
    stream = io.StringIO()
    console = Console(
        file=stream,
        width=width,
        force_terminal=style,
        color_system="truecolor" if style else None,
        legacy_windows=False,
    )
    terminal.render(session, console, output_directory=Path("reports"), verbose=verbose)
    return stream.getvalue()


@every_variant
@pytest.mark.parametrize("width", [30, 80, 120])
@pytest.mark.parametrize("verbose", [False, True])
def test_the_summary_gives_no_commands(pair: Pair, width: int, verbose: bool) -> None:
    text = printed(pair.poisoned, width=width, verbose=verbose)

    assert commands(text) == []
    assert not acting(text)
    assert max(map(len, text.splitlines())) <= width


@every_variant
def test_the_summary_has_no_styles_but_its_own(pair: Pair) -> None:
    clean, poisoned = (
        printed(session, width=120, verbose=True, style=True)
        for session in (pair.clean, pair.poisoned)
    )

    assert not acting(STYLE.sub("", poisoned))
    assert set(STYLE.findall(poisoned)) <= set(STYLE.findall(clean))


def test_a_profile_gives_no_commands() -> None:
    stream = io.StringIO()
    report = trace_report(POISON)
    for width in (40, 120):
        for verbose in (False, True):
            console = Console(file=stream, width=width, color_system=None)
            trace_terminal.render(report, console, written=[POISON], verbose=verbose)

    assert commands(stream.getvalue()) == []
    assert not acting(stream.getvalue())


def test_progress_gives_no_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    # Wide enough for each to be one line, as line ends of ours would hide those of a stranger.
    monkeypatch.setattr("pipediag.runner.progress.columns", lambda _: 1_000_000)
    monkeypatch.setattr("pipediag.runner.progress.fresh_line", lambda _: "")
    stream = io.StringIO()
    stream.isatty = lambda: True  # type: ignore[method-assign]
    show = ProgressLine(stream)
    show(Trying(POISON, left_s=1))
    show(Decided("edit", POISON, "confirmed", speedup=2, ci95=(1, 3), basis="step"))

    text = stream.getvalue().replace("\r\x1b[2K", "")
    assert commands(text) == []
    assert not acting(text)
    assert text.count("\n") == 1


@cache
def page(text: str) -> Page:
    return Page(text)


def kinds(element: Element) -> set[tuple[str, tuple[str, ...]]]:
    own = {(element.tag, tuple(sorted(element.attributes)))}
    return own.union(*(kinds(child) for child in element.children))


@every_variant
def test_a_page_has_the_same_kinds_of_elements(pair: Pair) -> None:
    clean, poisoned = html.render(pair.clean), html.render(pair.poisoned)

    # What stands between two backticks of a text is set as code.
    assert kinds(page(poisoned).root) <= kinds(page(clean).root) | {("code", ())}
    [running] = page(poisoned).running_scripts()
    assert running.text == page(clean).running_scripts()[0].text
    assert acting(poisoned) <= {"\t"}
    assert "Content-Security-Policy" in poisoned
    links = [item.attributes["href"] for item in page(poisoned).root.find("link")]
    assert links == ["data:,"]


@every_variant
def test_the_report_as_markdown_holds_the_same_elements(pair: Pair) -> None:
    parser = MarkdownIt("commonmark").enable("table")
    shapes = []
    for session in (pair.clean, pair.poisoned):
        text = markdown.render(session)
        assert not acting(text)
        assert commands(text) == []
        found = list(nodes(parser.parse(text)))
        markup = [node.content for node in found if node.type == "html_inline"]
        assert set(markup) <= {"<!-- -->"}
        shapes.append([n.type for n in found if "text" not in n.type and n.type != "html_inline"])
    assert shapes[0] == shapes[1]


@every_variant
def test_no_cell_is_a_formula(pair: Pair) -> None:
    clean = {name: make() for name, make in tables.files(pair.clean)}
    for name, make in tables.files(pair.poisoned):
        text = make()
        rows = list(csv.reader(io.StringIO(text)))
        assert len(rows) == len(list(csv.reader(io.StringIO(clean[name]))))
        assert len({len(row) for row in rows}) == 1
        assert not [cell for row in rows for cell in row if FORMULA.match(cell)]
        assert not acting(text)


@every_variant
def test_json_comes_back_as_it_was(pair: Pair, folder: Path) -> None:
    [(_, text)] = json_reporter.files(pair.poisoned)

    assert not acting(text)
    assert commands(text) == []
    (folder / "again.json").write_bytes(text.encode())
    assert load_session(folder / "again.json") == pair.poisoned


def test_the_json_of_a_profile_is_utf_8() -> None:
    text = dump_trace_report(trace_report(POISON))

    assert not acting(text)
    assert commands(text) == []
    assert json.loads(text.encode())["hosts"]


def test_a_trace_for_perfetto_is_utf_8() -> None:
    stream = io.StringIO()
    writer = TraceWriter(stream)
    pid = writer.process(POISON)
    writer.instant(writer.track(pid, POISON), 1, POISON, {POISON: POISON})
    writer.finish({POISON: POISON})

    assert not acting(stream.getvalue())
    assert commands(stream.getvalue()) == []
    assert json.loads(stream.getvalue().encode())["otherData"] == {POISON: POISON}
