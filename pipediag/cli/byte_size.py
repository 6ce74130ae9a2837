"""A size of memory as people write it: `16GB`, `512MiB`."""

from __future__ import annotations

import re

import click

_UNITS = {
    "": 1,
    "b": 1,
    **{f"{prefix}b": 1000**power for power, prefix in enumerate("kmgt", 1)},
    **{f"{prefix}ib": 1024**power for power, prefix in enumerate("kmgt", 1)},
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE | re.ASCII)
_LONGEST = 32
"""Characters."""


class ByteSize(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """Bytes; `GB` is 1000 to the third, `GiB` 1024 to the third."""

    name = "size"

    def convert(
        self,
        value: str | int,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        if isinstance(value, int):
            return value
        found = _SIZE.fullmatch(value) if len(value) <= _LONGEST else None
        if found is None or found[2].lower() not in _UNITS:
            self.fail(
                f"{value!r} is no size. Write a number and a unit, such as 16GB (1000 MB), 16GiB "
                "(1024 MiB) or 512MB.",
                param,
                ctx,
            )
        size = int(float(found[1]) * _UNITS[found[2].lower()])
        if size < 1:
            self.fail(f"{value!r} is no memory at all. Give at least one byte.", param, ctx)
        return size
