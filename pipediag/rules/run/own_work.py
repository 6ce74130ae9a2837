"""What the rules on the script's own work in a part of the run have in common."""

from __future__ import annotations

from collections.abc import Callable

from pipediag.rules.rule import Meta
from pipediag.rules.run.blocks import Block, blocks_of
from pipediag.rules.run.relevance import weigh
from pipediag.session.findings import Finding
from pipediag.session.ledger import Run
from pipediag.vocabulary import RunPartName


def findings_of(
    meta: Meta,
    run: Run,
    part: RunPartName,
    advice: Callable[[Block], str],
    to_framework: str,
) -> list[Finding]:
    """One for each piece of work that takes a notable part of the run.

    Args:
        meta: of the rule.
        run: the ledger.
        part: the one that the rule is about.
        advice: what to do about a piece of it.
        to_framework: what to say where a framework's own code runs for most of a piece.
    """
    rows = [row for row in run.parts if row.part == part]
    found = [_finding(meta, run, part, block, advice, to_framework) for block in blocks_of(rows)]
    return [one for one in found if one.status != "pass"] or [meta.finding("pass", "", part=part)]


def _finding(
    meta: Meta,
    run: Run,
    part: RunPartName,
    block: Block,
    advice: Callable[[Block], str],
    to_framework: str,
) -> Finding:
    row, times = block.hottest, block.count
    weight = weigh(run, block.rows, block.seconds)
    status, sentence = weight.status, weight.sentence
    if status == "fail" and block.in_framework_s > block.seconds / 2:
        status, sentence = "informative", to_framework
    return meta.finding(
        status,
        "" if status == "pass" else f"{sentence} {advice(block)}".strip(),
        place=(row.file, row.line),
        evidence=weight.evidence if times is None else {**weight.evidence, "times": times},
        part=part,
        for_run=weight.for_run,
    )
