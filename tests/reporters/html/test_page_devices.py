from __future__ import annotations

from pipediag.reporters.html import page as html
from pipediag.session.devices import DeviceActivity
from tests import factories
from tests.reporters import devices
from tests.reporters.html.pages import Element, Page


def section(*found: DeviceActivity) -> Element:
    page = Page(html.render(factories.make_session(devices=list(found))))
    return next(
        item
        for item in page.find("section")
        if item.attributes.get("aria-labelledby") == "devices-title"
    )


def table(part: Element, caption: str) -> list[list[str]]:
    chosen = next(
        item for item in part.find("table") if item.find("caption")[0].words().startswith(caption)
    )
    return [
        [cell.words().replace("\N{NO-BREAK SPACE}", " ").strip() for cell in row.children]
        for row in chosen.find("tbody")[0].find("tr")
    ]


def captions(part: Element) -> list[str]:
    return [caption.words().strip() for caption in part.find("caption")]


def test_the_causes_add_up_to_the_idle_time() -> None:
    rows = table(section(devices.make_gpu()), "Why it was idle")

    assert [row[1:] for row in rows] == [
        ["45.0 ms", "75.0 %", "45.0 %"],
        ["10.0 ms", "16.7 %", "10.0 %"],
        ["4.00 ms", "6.7 %", "4.0 %"],
        ["1.00 ms", "1.7 %", "1.0 %"],
    ]
    [foot] = section(devices.make_gpu()).find("tfoot")
    said = " ".join(foot.words().split())
    assert said == "All of it 60.0 ms 100.0 % 60.0 %"
    assert rows[0][0].startswith("Waiting for input")


def test_copies_show_the_exposed_part_and_what_is_not_known() -> None:
    assert table(section(devices.make_gpu()), "Copies") == [
        ["Host to device", "12", "7.00 ms", "5.00 ms", "66.8 MiB", "10.0"],
        ["Memory set", "3", "1.00 ms", "0 ms", "\N{EN DASH}", "\N{EN DASH}"],
    ]


def test_kernels_and_launches() -> None:
    part = section(devices.make_gpu())

    assert table(part, "The kernels of GPU:0")[0] == ["ampere_sgemm_128x64_tn", "24", "20.0 ms"]
    words = part.words().replace("\N{NO-BREAK SPACE}", " ")
    assert "264, 2,640 per second" in words
    assert "12.5 %" in words
    assert "20.0 ms, 15.0 ms of them on tensor cores" in words


def test_the_longest_gaps_with_cause_operation_line_and_what_the_thread_did() -> None:
    rows = table(section(devices.make_gpu()), "The longest idle gaps of GPU:0")

    assert [[row[0], *row[2:5]] for row in rows] == [
        ["Waiting for input", "20.0 ms", "30.0 ms", "1"],
        ["Waiting for input", "60.0 ms", "19.0 ms", "2"],
        ["Launching operations", "85.0 ms", "10.0 ms", "3"],
    ]
    assert "Prefetch::ParallelMapV2" in rows[0][1]
    assert "train.py:12" in rows[1][1]
    assert rows[2][1] == ""
    assert rows[2][5] == "ExecutorState::Process"


def test_says_how_much_it_computed_and_in_how_many_gaps_it_was_idle() -> None:
    words = section(devices.make_gpu()).words().replace("\N{NO-BREAK SPACE}", " ")

    assert "GPU:0 computes 35.0 %" in words
    assert "of 100 ms: 5.0 % only copying, 60.0 % idle, mostly waiting for input." in words
    assert "in 3 gaps of 5 µs or more, the longest 30.0 ms, and 400 shorter ones." in words


def test_nothing_where_there_is_nothing() -> None:
    part = section(devices.make_cpu(idle_ms=0.0, noise_ms=0.0, causes_ms={}, gaps=[], gap_count=0))

    assert part.find("table") == []
    assert part.find("details") == []
    assert part.find("dl") == []
    assert "No accelerator" in part.words()


def test_a_cpu_has_causes_and_gaps_alone() -> None:
    assert captions(section(devices.make_cpu())) == [
        "Why it was idle",
        "The longest idle gaps of CPU",
    ]


def test_says_how_many_gaps_the_table_leaves_out() -> None:
    assert (
        "The longest 3 of 4,000 gaps are in gaps.csv."
        in section(devices.make_gpu(gap_count=4_000)).words()
    )
    assert "All gaps are in gaps.csv." in section(devices.make_gpu()).words()
