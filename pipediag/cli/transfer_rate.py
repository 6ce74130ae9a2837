"""A rate as people write it: `16GB/s`, `900MiB/s`."""

from __future__ import annotations

import click

from pipediag.cli.byte_size import ByteSize


class TransferRate(click.ParamType):  # type: ignore[type-arg]  # generic from click 8.4 on
    """Bytes a second: a size of memory with `/s` behind it."""

    name = "rate"

    def convert(
        self,
        value: str | int,
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> int:
        if isinstance(value, int):
            return value
        size, slash, unit = value.rpartition("/")
        if not slash or unit.strip().lower() != "s" or _of_bits(size.rstrip()):
            self.fail(
                f"{value!r} is no rate of bytes. Write a size and `/s`, such as 16GB/s; of bits, "
                "an eighth.",
                param,
                ctx,
            )
        return ByteSize().convert(size, param, ctx)


def _of_bits(size: str) -> bool:
    """Links are sold by them, with a small b: `100Gb`, `100Gbit`."""
    return size.endswith("b") or size.lower().endswith(("bit", "bits"))
