"""The command ``haptics``: sub-commands, options, exit statuses; the work is done elsewhere."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from textwrap import indent
from typing import Any, NoReturn

from apps import commands
from apps.answer import Answer
from apps.catalogue import listed
from devices.faults import FAULTS
from haptics.errors import (
    ConfigurationError,
    DeviceFault,
    DeviceNotFoundError,
    DeviceOpenError,
    HapticError,
    RecordingError,
)

WRONG_REQUEST, NO_DEVICE, DEVICE_FAULT, INTERRUPTED = 2, 3, 4, 130

_STATUS: tuple[tuple[type[HapticError], int], ...] = (
    (ConfigurationError, WRONG_REQUEST),
    (RecordingError, WRONG_REQUEST),
    (DeviceNotFoundError, NO_DEVICE),
    (DeviceOpenError, NO_DEVICE),
    (DeviceFault, DEVICE_FAULT),
)


_TOOLS = {
    "bench": "benchmarks, as ratios to a reference measured in the same run",
    "conformance": "the friction conformance suite, for every model and for renderers of others",
    "doctor": "what this machine lacks for 1 kHz, and the lines that mend it",
    "reproduce": "the figures and tables of the papers, with the papers' numbers beside ours",
}
"""Commands with a package of their own: its module ``command`` has ``add_options`` and ``run``."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, like every other part of the project."""

    def error(self, message: str) -> NoReturn:
        raise ConfigurationError(f"{message}; see '{self.prog} --help'.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    0 done; 2 the request is wrong; 3 no such device, or it could not be opened; 4 a device failed during the run;
    130 interrupted.
    """
    _open_standard_streams()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    as_json = "--json" in arguments
    try:
        options = _parser().parse_args(arguments)
        answer: Answer = options.command(options)
    except HapticError as error:
        status = next(number for kind, number in _STATUS if isinstance(error, kind))
        answer = Answer({"error": str(error)}, status=status, error=str(error))
    except OSError as error:
        answer = Answer({"error": str(error)}, status=WRONG_REQUEST, error=f"{error}.")
    except KeyboardInterrupt:
        with contextlib.suppress(ValueError):  # not the main thread
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # once is enough
        answer = Answer({"error": "interrupted"}, status=INTERRUPTED, error="interrupted")
    with contextlib.suppress(OSError):  # who closed the pipe did not want to hear the end
        _print(answer, as_json)
    return answer.status


def _open_standard_streams() -> None:
    """Give closed standard streams somewhere to go: else the next file that is opened would take their number."""
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")


def _print(answer: Answer, as_json: bool) -> None:
    if answer.error:
        print(f"haptics: {answer.error}", file=sys.stderr)
    if as_json:
        print(json.dumps(answer.result, allow_nan=False), flush=True)
    elif answer.text:
        print(answer.text, flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="haptics", description="Feel friction at 1 kHz, and measure what was felt.")
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _add_demo(subparsers)
    _add_run(subparsers)
    _add_devices(subparsers)
    _add_replay(subparsers)
    for name, summary in _TOOLS.items():
        _add_tool(subparsers, name, summary)
    for subparser in subparsers.choices.values():
        subparser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    return parser


def _add_demo(subparsers: Any) -> None:
    parser = subparsers.add_parser("demo", help="the main job with no hardware: virtual joystick, model C, a hand")
    _add_session_options(parser)
    parser.set_defaults(
        command=commands.demo, device=None, model=None, config=None, assignments=[], hand=None, rate=None, faults=[]
    )


def _add_run(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="an interactive session on a device",
        epilog="faults on demand:\n" + indent(listed({name: kind.description for name, kind in FAULTS.items()}), "  "),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--device", metavar="NAME", help="backend name; see 'haptics devices'")
    parser.add_argument("--model", metavar="NAME", help="A, B, C, D or a classic model; see 'haptics devices'")
    parser.add_argument("--config", metavar="FILE.toml", type=Path, help="settings from a file")
    parser.add_argument(
        "--set",
        dest="assignments",
        metavar="KEY=VALUE",
        action="append",
        default=[],
        help="one setting, for instance law.force=3 or element.stiffness=4000 (repeatable)",
    )
    parser.add_argument("--rate", metavar="HZ", type=float, help="servo rate (default 1000)")
    parser.add_argument("--hand", metavar="NAME|FILE", help="what moves a virtual device: a hand, or a CSV file")
    parser.add_argument(
        "--fault",
        dest="faults",
        metavar="NAME@SECONDS",
        action="append",
        default=[],
        help="turn the device bad from that time on, for instance nan@2 (repeatable); nan@2+0.05 lasts 0.05 s",
    )
    _add_session_options(parser)
    parser.set_defaults(command=commands.run)


def _add_session_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--duration", metavar="S", type=float, help="length of the run; default: until it is stopped")
    parser.add_argument("--record", metavar="DIR", help="folder in which the recording is made (default: recordings)")
    parser.add_argument("--headless", action="store_true", help="without the live view")
    parser.add_argument(
        "--seed", metavar="N", type=int, help="seed of everything random in a virtual device (default 1)"
    )
    parser.add_argument("--theme", choices=("auto", "dark", "light"), default="auto", help="colours of the live view")


def _add_devices(subparsers: Any) -> None:
    parser = subparsers.add_parser("devices", help="the devices, what is plugged in, what is missing to use it")
    parser.set_defaults(command=commands.devices)


def _add_replay(subparsers: Any) -> None:
    parser = subparsers.add_parser("replay", help="scrub through a recording, or verify it bit for bit")
    parser.add_argument("recording", metavar="RECORDING", type=Path, help="folder of the recording")
    parser.add_argument("--verify", action="store_true", help="compute every tick again and compare bit for bit")
    parser.add_argument(
        "--headless", action="store_true", help="without a window: say what is in it and draw a picture"
    )
    parser.add_argument("--theme", choices=("auto", "dark", "light"), default="auto", help="colours of the window")
    parser.set_defaults(command=commands.replay)


def _add_tool(subparsers: Any, name: str, summary: str) -> None:
    tool = importlib.import_module(f"apps.{name}.command")
    parser = subparsers.add_parser(name, help=summary)
    tool.add_options(parser)
    parser.set_defaults(command=tool.run)
