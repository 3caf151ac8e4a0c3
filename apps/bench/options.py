"""Options of ``haptics bench``: each is accepted only by certain benchmarks."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from haptics.errors import ConfigurationError


@dataclass(frozen=True)
class Option:
    """Option of some benchmarks, which check its value.

    Attributes
    ----------
    name, metavar : str
        ``--name METAVAR``.
    kind : type
        Type of the value.
    takers : tuple of str
        Benchmarks that accept it.
    text : str
        Help text.
    """

    name: str
    metavar: str
    kind: type
    takers: tuple[str, ...]
    text: str


_TURNS = ("servo", "stream")
"""Benchmarks with real-time slices."""

_LONG = ("soak", "hours")
"""Benchmarks with long recordings."""

OPTIONS = (
    Option(
        "duration",
        "S",
        float,
        (*_TURNS, *_LONG),
        "length of the whole measurement (80), of the soak or the longest recording (3600)",
    ),
    Option("rate", "HZ", float, (*_TURNS, *_LONG), "servo rate (1000)"),
    Option("slice", "S", float, _TURNS, "length of one slice of each candidate (10, or what fits)"),
    Option("scheduling", "CLASS", str, _TURNS, "auto, fifo or other, for both candidates (auto)"),
    Option("cpu", "N", int, _TURNS, "the processor that both candidates stay on (any)"),
    Option("stream", "KIND", str, ("stream",), "in turns with none: udp, websocket or both (both)"),
    Option(
        "view",
        "WHEN",
        str,
        ("servo",),
        "with a live view: on, off, both; stage: with it and the stage, and with neither (both)",
    ),
    Option("device", "NAME", str, _LONG, "backend name (virtual-joystick)"),
    Option("model", "NAME", str, _LONG, "friction model (the one that suits the device)"),
    Option("record", "DIR", str, _LONG, "folder of the recordings; those of the soak are kept"),
)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options to the parser of the command."""
    for option in OPTIONS:
        takers = ", ".join(option.takers)
        parser.add_argument(
            f"--{option.name}", metavar=option.metavar, type=option.kind, help=f"{takers}: {option.text}"
        )


def options_by_benchmark(options: argparse.Namespace, names: Sequence[str]) -> dict[str, dict[str, Any]]:
    """Return the options given to each of the benchmarks `names`.

    Raises
    ------
    ConfigurationError
        If an option is accepted by none of them, or no benchmark was named.
    """
    found: dict[str, dict[str, Any]] = {name: {} for name in names}
    for option in OPTIONS:
        value = getattr(options, option.name)
        if value is None:
            continue
        takers = [name for name in names if name in option.takers]
        if not takers:
            raise ConfigurationError(
                f"--{option.name} goes with the benchmark {' or '.join(option.takers)} only: "
                + (f"{', '.join(names)} cannot use it." if names else f"haptics bench {option.takers[0]} ...")
            )
        for name in takers:
            found[name][option.name] = value
    return found
