"""The gate's configuration: `[tool.pipediag]` in pyproject.toml, kebab-case."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pipediag.encoding.terminal import one_line
from pipediag.errors import PipediagError
from pipediag.gate.result import Level
from pipediag.vocabulary import RUN_PARTS, RunPartName

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

RuleLevel = Literal["off", "warn", "error"]
Percent = Annotated[float, Field(ge=0, le=100)]

VERDICT = "verdict"
"""The name of the check of the verdict, which has a severity in the configuration as rules have."""

_LONGEST_SHOWN = 100
"""Characters of a key or a value in a message."""
_MOST_LISTED = 10

_EXPECTED = {
    "max-input-wait-percent": "a number from 0 to 100",
    "max-overhead-percent": "a number from 0 to 100",
    "max-device-idle-percent": "a number from 0 to 100",
    "max-confirmed-speedup-left": "a ratio of 1 or more, such as 1.2",
    "max-slowdown-percent": "a number above 0, up to 1000",
    "on-machine": 'a table with fingerprint = "..." and max-step-ms = number',
    "max-run-percent": "a table of part = percent, as in [tool.pipediag.max-run-percent]",
    "fail-on": '"warn" or "error"',
    "allow-inconclusive": "true or false",
    "rules": 'a table of rule = "off", "warn" or "error"',
}


def _with_underscores(table: object) -> object:
    """A configuration may spell the parts of a run as it spells its keys."""
    if not isinstance(table, dict):
        return table
    spelt = {part.replace("_", "-"): part for part in RUN_PARTS}
    return {spelt.get(name, name): value for name, value in table.items()}


class _Table(BaseModel):
    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        populate_by_name=True,
        alias_generator=lambda name: name.replace("_", "-"),
        use_attribute_docstrings=True,
    )


class OnMachine(_Table):
    """Limits on times, which hold on one machine only."""

    fingerprint: str
    """The machine's, as `environment.fingerprint` of its sessions has it."""
    max_step_ms: Annotated[float, Field(gt=0, le=1e9)]
    """The most that the median step may take there."""


class GateConfig(_Table):
    """Limits and levels; with none set, the verdict and the rules' own severities decide."""

    max_input_wait_percent: Percent | None = None
    """The most that input wait may take of the step, percent."""
    max_overhead_percent: Percent | None = None
    """The most that dispatch, Python, compilation and waiting for the device may take together."""
    max_device_idle_percent: Percent | None = None
    """The most of a profile in which the device that is idle most may be idle, percent."""
    max_run_percent: Annotated[dict[RunPartName, Percent], BeforeValidator(_with_underscores)] = {}
    """The most that parts of the run may take of it, percent, by `epoch-start`, `compile`, ..."""
    max_confirmed_speedup_left: Annotated[float, Field(ge=1, le=1e6)] | None = None
    """The most that all confirmed edits together may still speed the steps up, as a ratio."""
    max_slowdown_percent: Annotated[float, Field(gt=0, le=1000)] | None = None
    """The smallest slow-down against a baseline that counts; None for the built-in one."""
    on_machine: OnMachine | None = None
    """Limits on times, for sessions of one machine."""
    fail_on: Level = "error"
    """The lowest severity that fails the gate."""
    allow_inconclusive: bool = False
    """Whether a gate that could not decide ends with status 0 instead of 4."""
    rules: dict[str, RuleLevel] = {}
    """Severity by rule id, in place of the rule's own; of `verdict`, in place of the verdict's."""

    def override(
        self, *, fail_on: Level | None = None, allow_inconclusive: bool = False
    ) -> GateConfig:
        """The same with what the command line said, which wins."""
        return self.model_copy(
            update={
                "fail_on": fail_on or self.fail_on,
                "allow_inconclusive": allow_inconclusive or self.allow_inconclusive,
            }
        )


def load_config(path: Path | None, rules: Collection[str]) -> GateConfig:
    """Read `[tool.pipediag]` from `path`, or from the nearest pyproject.toml at or above here.

    Without `path`, a missing file or table means the defaults. `rules` are the ids that there are.

    Raises:
        PipediagError: the named file or its table is missing, a file is not TOML, a key or a rule
            is unknown or a value is of the wrong kind.
    """
    source = path if path is not None else _nearest_pyproject(Path.cwd())
    if source is None:
        return GateConfig()
    table = _pipediag_table(source)
    if table is None:
        if path is not None:
            raise PipediagError(
                f"{path} has no [tool.pipediag] table, so there is nothing to check against. "
                "Add the table, or leave out --config to use the defaults."
            )
        return GateConfig()
    config = _parse(table, source)
    reject_unknown_rules(config, [*rules, VERDICT], f"In {source}, [tool.pipediag.rules]")
    return config


def config_of(limits: Mapping[str, object]) -> GateConfig:
    """What a call has as its arguments: the keys of `[tool.pipediag]`, with underscores.

    Raises:
        TypeError: there is none, or one that does not exist.
        ValueError: a value is of the wrong kind.
    """
    table = {name.replace("_", "-"): value for name, value in limits.items()}
    unknown = sorted(set(table) - set(_EXPECTED))
    if unknown or not table:
        valid = ", ".join(key.replace("-", "_") for key in _EXPECTED)
        named = _listed([name.replace("-", "_") for name in unknown])
        wrong = f"there is no limit {named}" if unknown else "no limit was given"
        raise TypeError(f"{wrong}. Valid ones: {valid}.")
    try:
        return GateConfig.model_validate(table)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        raise ValueError(
            f"{key.replace('-', '_')} must be {_EXPECTED[key]}, not {_shown(table.get(key))}."
        ) from None


def reject_unknown_rules(config: GateConfig, known: Collection[str], where: str) -> None:
    """Refuse rule ids that nobody knows: a misspelt one would silently gate nothing.

    Args:
        config: may name rules.
        known: the ids that there are.
        where: what names them, at the head of a sentence.

    Raises:
        PipediagError: lists the valid ids.
    """
    unknown = sorted(set(config.rules) - set(known))
    if unknown:
        raise PipediagError(
            f"{where} names {_listed(unknown)}, which is no rule of pipediag. "
            f"Valid rules: {', '.join(sorted(known))}."
        )


def _nearest_pyproject(start: Path) -> Path | None:
    candidates = (folder / "pyproject.toml" for folder in (start, *start.parents))
    return next((file for file in candidates if file.is_file()), None)


def _pipediag_table(source: Path) -> dict[str, Any] | None:
    try:
        content = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise PipediagError(
            f"Cannot read the configuration {source}: {error.strerror}. "
            "Name a readable pyproject.toml with --config."
        ) from error
    except ValueError as error:  # a number of too many digits is one that tomllib does not know
        reason = one_line(str(error)).rstrip(".")
        raise PipediagError(f"{source} is not valid TOML: {reason}.") from error
    except RecursionError as error:
        raise PipediagError(f"{source} is nested too deeply to be a configuration.") from error
    tools = content.get("tool", {})
    table = tools.get("pipediag") if isinstance(tools, dict) else tools
    if table is not None and not isinstance(table, dict):
        raise PipediagError(f"In {source}, tool.pipediag must be a table, [tool.pipediag].")
    return table


def _parse(table: dict[str, Any], source: Path) -> GateConfig:
    # Checked here, because the model itself would also take the Python spelling of a key.
    unknown = sorted(set(table) - set(_EXPECTED))
    if unknown:
        raise PipediagError(
            f"In {source}, [tool.pipediag] has the unknown key {_listed(unknown)}. "
            f"Valid keys: {', '.join(_EXPECTED)}."
        )
    try:
        return GateConfig.model_validate(table)
    except ValidationError as error:
        raise PipediagError(f"In {source}, {one_line(_explain(error))}") from error


def _explain(error: ValidationError) -> str:
    first = error.errors()[0]
    key, *inner = (str(part) for part in first["loc"])
    if key == "on-machine" and inner:
        return (
            f"on-machine in [tool.pipediag] must be {_EXPECTED[key]}: "
            f"{_explain_entry(inner[0], first['type'], first['input'])}."
        )
    if key == "max-run-percent" and inner:
        return _explain_part(inner[0], inner[1:], first["input"])
    if key == "rules" and inner:
        return (
            f"the rule {inner[0]} in [tool.pipediag.rules] must be "
            f'"off", "warn" or "error", not {_shown(first["input"])}.'
        )
    return f"{key} in [tool.pipediag] must be {_EXPECTED[key]}, not {_shown(first['input'])}."


def _explain_entry(name: str, kind: str, value: object) -> str:
    """What is wrong with an entry of a table that has its entries given."""
    if kind == "missing":
        return f"{name} is missing"
    if kind == "extra_forbidden":
        return f'there is no key "{name}" in it'
    return f"{name} is {_shown(value)}"


def _explain_part(name: str, inner: list[str], value: object) -> str:
    """Of the limit on one part of the run: the name is at fault, or the value."""
    if inner:
        parts = ", ".join(part.replace("_", "-") for part in RUN_PARTS)
        return (
            f'[tool.pipediag.max-run-percent] names "{name}", which is no part of a run. '
            f"Valid parts: {parts}."
        )
    part = name.replace("_", "-")
    return (
        f"{part} in [tool.pipediag.max-run-percent] must be a number from 0 to 100, "
        f"not {_shown(value)}."
    )


def _shown(value: object) -> str:
    try:
        return one_line(repr(value), _LONGEST_SHOWN)
    except ValueError:
        return "a number of so many digits"


def _listed(names: list[str]) -> str:
    """The first of them: a file may hold any number."""
    shown = [f'"{one_line(name, _LONGEST_SHOWN)}"' for name in names[:_MOST_LISTED]]
    if len(names) > _MOST_LISTED:
        shown.append(f"and {len(names) - _MOST_LISTED} more")
    return ", ".join(shown)
