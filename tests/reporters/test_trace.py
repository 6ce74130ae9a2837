"""A trace report on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipediag.reporters.terminal.trace import render
from pipediag.session.devices import DeviceKernel, TraceReport, UnreadFile
from pipediag.trace import ON_TPU
from pipediag.vocabulary import GAP_CAUSES
from tests import factories
from tests.reporters import devices
from tests.reporters.pages import on_terminal
from tests.reporters.sessions import HOSTILE

HEADLINE = (
    "● GPU:0 computes 35 % of 100 ms: 5.0 % only copying, 60 % idle, mostly waiting for input"
)
WRITTEN = ["out/trace.json, out/gaps.csv", "out/trace.perfetto.json.gz for ui.perfetto.dev"]


def one_device() -> TraceReport:
    return devices.make_report(findings=[factories.make_finding()])


def on_a_cpu() -> TraceReport:
    return devices.make_report(devices=[devices.make_cpu()])


def nothing() -> TraceReport:
    host = devices.make_trace_host(steps=None, steps_missing="No steps, for a reason.")
    return devices.make_report(hosts=[host], devices=[])


def many() -> TraceReport:
    """Of everything more than fits."""
    endless = "word " * 500
    gpu = devices.make_gpu(
        host="very-long-host-name" * 4,
        gaps=[devices.make_gap(start_ms=float(i), doing=endless) for i in range(50)],
        kernels=[DeviceKernel(name=f"{i}{endless}", count=24, ms=20.0) for i in range(20)],
        copies=devices.make_gpu().copies * 4,
        causes_ms=dict.fromkeys(GAP_CAUSES, 59.0 / len(GAP_CAUSES)),
        collective_ms=3.0,
        exposed_collective_ms=1.0,
    )
    host = devices.make_trace_host(path="/very" * 60, warnings=[endless])
    return devices.make_report(
        hosts=[host.but(host=f"host{i}") for i in range(12)],
        unread=[UnreadFile(path="1.pb", reason=f"1.pb is damaged. {endless}")] * 9,
        devices=[gpu.but(name=f"GPU:{i}") for i in range(40)],
        findings=[factories.make_finding(title=endless, advice=endless)] * 20,
    )


def hostile() -> TraceReport:
    gap = devices.make_gap(file=HOSTILE, iterator=f"[bold]{HOSTILE}", doing=HOSTILE)
    kernel = devices.make_gpu().kernels[0].but(name=f"[red]{HOSTILE}[/red]")
    return devices.make_report(
        hosts=[devices.make_trace_host(path=HOSTILE, warnings=[HOSTILE])],
        devices=[devices.make_gpu(name=HOSTILE, model=HOSTILE, gaps=[gap], kernels=[kernel])],
        findings=[factories.make_finding(title=HOSTILE, advice=HOSTILE)],
    )


REPORTS: dict[str, Callable[[], TraceReport]] = {
    "one device": one_device,
    "CPU": on_a_cpu,
    "nothing": nothing,
    "many": many,
    "hostile": hostile,
}
every_report = pytest.mark.parametrize("make", REPORTS.values(), ids=REPORTS)


def test_a_profile_of_tpus_gives_no_advice_on_a_gpu() -> None:
    host = devices.make_trace_host(warnings=[ON_TPU])
    lines = shown(devices.make_report(hosts=[host], devices=[])).splitlines()
    assert "TPU" in lines[0]
    assert "CUPTI" not in shown(devices.make_report(hosts=[host], devices=[]))


def shown(report: TraceReport, **terminal: Any) -> str:
    return on_terminal(lambda console: render(report, console, written=WRITTEN), **terminal)


@every_report
@pytest.mark.parametrize("width", [80, 120])
def test_no_line_is_longer_than_the_terminal(make: Callable[[], TraceReport], width: int) -> None:
    lines = shown(make(), width=width).splitlines()
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


@every_report
def test_ascii_and_no_control_characters(make: Callable[[], TraceReport]) -> None:
    assert shown(make(), encoding="ascii").isascii()
    assert "\x1b" not in shown(make())


def test_says_steps_causes_kernels_gaps_and_findings() -> None:
    text = shown(one_device(), width=120).replace("\N{NO-BREAK SPACE}", " ")
    assert HEADLINE in text
    assert "4, found by the framework's step annotations; median 24.5 ms" in text
    assert "45 % waiting for input, 35 % device compute" in " ".join(text.split())
    assert "Waiting for input     ███████████████·····   75 %  45.0 ms" in text
    assert "20.0 ms   24x  ampere_sgemm_128x64_tn" in text
    assert "Gaps under 5 µs" in text
    assert "1 x 30.0 ms  Waiting for input     Prefetch::ParallelMapV2" in text
    assert "30.0 ms in all" in text
    assert "in ExecutorState::Process" in text
    assert "A stateful map runs one element at a time" in text
