"""`pipediag explain`: what a rule is about, and its thresholds."""

from __future__ import annotations

import difflib
import sys
import textwrap

import click

from pipediag.cli.common import say, text_width
from pipediag.errors import PipediagError

_WIDTH = 88
_MORE = "`pipediag explain RULE` explains one."


@click.command("explain", short_help="Explain a rule and its thresholds.")
@click.argument("rule", required=False)
def command(rule: str | None) -> None:
    """Explain RULE and where its thresholds come from; without it, list the rules."""
    say(_list() if rule is None else _explanation(rule), err=False)


def _list() -> str:
    from pipediag.rules.registry import BY_ID

    width = max(map(len, BY_ID))
    lines = []
    for name, rules in BY_ID.items():
        line = f"{name:<{width}}  {'; '.join(rule.title for rule in rules)}"
        lines += _wrapped(line, " " * (width + 2), indent="")
    return "\n".join([*lines, "", *_wrapped(_MORE, "", indent="")])


def _explanation(rule_id: str) -> str:
    from pipediag.rules.reference import paragraphs
    from pipediag.rules.registry import BY_ID

    rules = BY_ID.get(rule_id.lower().replace("_", "-"))
    if rules is None:
        close = difflib.get_close_matches(rule_id, BY_ID, n=3, cutoff=0.5)
        meant = f" Did you mean {', '.join(close)}?" if close else ""
        raise PipediagError(
            f"There is no rule '{rule_id}', so there is nothing to explain.{meant} "
            f"The rules are: {', '.join(BY_ID)}."
        )
    titles = "; ".join(rule.title for rule in rules)
    lines = _wrapped(f"{rules[0].id}: {titles}", "  ", indent="")
    for heading, texts in paragraphs(rules):
        lines += ["", heading]
        for text in texts:
            lines += _wrapped(text, "    " if len(texts) > 1 else "  ")
    return "\n".join(lines)


def _wrapped(text: str, subsequent: str, indent: str = "  ") -> list[str]:
    return textwrap.wrap(
        text,
        text_width(sys.stdout, _WIDTH),
        initial_indent=indent,
        subsequent_indent=subsequent,
        break_on_hyphens=False,
        break_long_words=False,
    )
