"""What axe-core finds in the page that a browser shows, rule of accessibility by rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

_RUN = """
const [rules, done] = arguments;
const options = {resultTypes: ["violations"]};
if (rules.length) options.runOnly = {type: "rule", values: rules};
axe.run(document, options).then(found => done(found.violations), fault => done(String(fault)));
"""


def serious(driver: Any, rules: Sequence[str] = ()) -> list[str]:
    """What keeps somebody from reading or using the page: rule, place and reason of each.

    Args:
        driver: a browser with the page.
        rules: those to try; all where there are none.
    """
    from axe_core_python.base import AXE_SCRIPT

    if not driver.execute_script("return typeof axe === 'object'"):
        driver.execute_script(AXE_SCRIPT)
    found = driver.execute_async_script(_RUN, list(rules))
    assert isinstance(found, list), found
    return [
        f"{rule['id']}: {node['html'][:120]}: {node['failureSummary']}"
        for rule in found
        if rule["impact"] in ("serious", "critical")
        for node in rule["nodes"]
    ]
