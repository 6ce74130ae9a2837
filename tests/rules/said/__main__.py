"""`python -m tests.rules.said`: the findings of all tests of rules, written anew."""

from __future__ import annotations

import sys

import pytest

from tests.rules import said


def main() -> None:
    said.collected = {}
    # The plugin's package would have its assertions rewritten, and is imported here.
    quietly = ["-q", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    # What holds the files against the rules has none yet of a rule that is new.
    quietly += ["--ignore", str(said.FOLDER.parent / "test_said.py")]
    if status := pytest.main([*quietly, str(said.FOLDER.parent)]):
        sys.exit(status)
    for file in said.FOLDER.glob("*.json"):
        file.unlink()
    for rule, findings in said.collected.items():
        said.write(rule, findings)


if __name__ == "__main__":
    main()
