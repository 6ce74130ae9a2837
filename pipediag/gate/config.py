"""The gate's configuration: `[tool.pipediag]` in pyproject.toml."""

from __future__ import annotations

import sys
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from pipediag.encoding import one_line
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
"""The name of the check of the verdict, which the configuration gives a severity like a rule."""

_LONGEST_SHOWN = 100
"""Characters of a key or a value that a message shows."""


def _with_underscores(table: object) -> object:
    """Accept the parts of a run with hyphens, as keys are spelt."""
    if not isinstance(table, dict):
        return table
    spelt = {part.replace("_", "-"): part for part in RUN_PARTS}
    return {spelt.get(name, name): value for name, value in table.items()}


class GateConfig(BaseModel):
    """Limits and levels; with none set, the verdict and the rules' own severities decide."""

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        strict=True,
        populate_by_name=True,
        alias_generator=lambda name: name.replace("_", "-"),
    )

    max_input_wait_percent: Percent | None = None
    """The most that input wait may take of the step, percent."""
    max_overhead_percent: Percent | None = None
    """The most that dispatch, Python, compilation and waiting for the device may take together."""
    max_run_percent: Annotated[dict[RunPartName, Percent], BeforeValidator(_with_underscores)] = {}
    """The most that parts of the run may take of it, percent, by `epoch-start`, `compile`, ..."""
    max_confirmed_speedup_left: Annotated[float, Field(ge=1, le=1e6)] | None = None
    """The most that all confirmed edits together may still speed the steps up, as a ratio."""
    max_slowdown_percent: Annotated[float, Field(gt=0, le=1000)] | None = None
    """The smallest slow-down against a baseline that counts; None for the built-in one."""
    fail_on: Level = "error"
    """The lowest severity that fails the gate."""
    allow_inconclusive: bool = False
    """True if an undecided gate ends with status 0 instead of 4."""
    rules: dict[str, RuleLevel] = {}
    """Severity by rule id, in place of the rule's own; of `verdict`, in place of the verdict's."""

    def override(
        self, *, fail_on: Level | None = None, allow_inconclusive: bool = False
    ) -> GateConfig:
        """Return a copy with the values of the command line, which take precedence."""
        return self.model_copy(
            update={
                "fail_on": fail_on or self.fail_on,
                "allow_inconclusive": allow_inconclusive or self.allow_inconclusive,
            }
        )


def load_config(path: Path | None, rules: Collection[str]) -> GateConfig:
    """Read `[tool.pipediag]` from `path`, or from the nearest pyproject.toml at or above here.

    Without `path`, a missing file or table means the defaults. `rules` are the ids that there are.

    Raises PipediagError: the named file or its table is missing, a file is not TOML, a key or a
    rule is unknown or a value is of the wrong kind.
    """
    here = Path.cwd()
    candidates = (folder / "pyproject.toml" for folder in (here, *here.parents))
    source = path or next((file for file in candidates if file.is_file()), None)
    table = _pipediag_table(source) if source is not None else None
    if table is None and path is not None:
        raise PipediagError(
            f"{path} has no [tool.pipediag] table, so there is nothing to check against. "
            "Add the table, or leave out --config to use the defaults."
        )
    return _checked(table or {}, [*rules, VERDICT], f"[tool.pipediag] in {source}")


def config_of(limits: Mapping[str, object], rules: Collection[str]) -> GateConfig:
    """Return the configuration of keyword arguments: keys of `[tool.pipediag]`, with underscores.

    Raises PipediagError: there is no argument, or one that `load_config` would refuse.
    """
    if not limits:
        raise PipediagError("No limit was given.")
    table = {name.replace("_", "-"): value for name, value in limits.items()}
    return _checked(table, rules, "The call")


def _checked(table: Mapping[str, object], rules: Collection[str], what: str) -> GateConfig:
    # Checked here, because the model itself would also take the Python spelling of a key.
    keys = {field.alias or name for name, field in GateConfig.model_fields.items()}
    if unknown := sorted(set(table) - keys):
        raise PipediagError(
            f"{what} has the unknown key {_listed(unknown)}. Valid keys: {', '.join(sorted(keys))}."
        )
    try:
        config = GateConfig.model_validate(table)
    except ValidationError as error:
        raise PipediagError(f"{what} has a wrong value: {_explain(error)}") from error
    # A misspelt rule would silently gate nothing.
    if unknown := sorted(set(config.rules) - set(rules)):
        raise PipediagError(
            f"{what} names {_listed(unknown)}, which is not a rule of pipediag. "
            f"Valid rules: {', '.join(sorted(rules))}."
        )
    return config


def _pipediag_table(source: Path) -> dict[str, Any] | None:
    try:
        content = tomllib.loads(source.read_text(encoding="utf-8"))
    except OSError as error:
        raise PipediagError(
            f"Cannot read the configuration {source}: {error.strerror}. "
            "Name a readable pyproject.toml with --config."
        ) from error
    except (ValueError, RecursionError) as error:
        reason = one_line(str(error)).rstrip(".")
        raise PipediagError(f"{source} is not valid TOML: {reason}.") from error
    tools = content.get("tool", {})
    table = tools.get("pipediag") if isinstance(tools, dict) else tools
    if table is not None and not isinstance(table, dict):
        raise PipediagError(f"In {source}, tool.pipediag must be a table, [tool.pipediag].")
    return table


def _explain(error: ValidationError) -> str:
    """Return the first problem: the key, what is expected there, and what is there."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"] if part != "[key]")
    given = one_line(repr(first["input"]), _LONGEST_SHOWN)
    return one_line(f"{one_line(key, _LONGEST_SHOWN)}: {first['msg']}, not {given}.")


def _listed(names: list[str]) -> str:
    return ", ".join(f'"{one_line(name, _LONGEST_SHOWN)}"' for name in names)
