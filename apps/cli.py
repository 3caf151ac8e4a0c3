"""Command line of ``haptics``: sub-commands, options and exit statuses.

The modules `apps.commands` and ``apps.NAME.command`` implement the commands.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import indent
from typing import Any

from apps import commands
from apps.catalogue import listed
from apps.gallery import command as gallery
from apps.shared.answer import Answer
from apps.shared.parser import Parser, Version
from apps.shared.words import wrapped
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
    "calibrate": "identify parameters (friction, motors, an arm, a stick) and write them to a file",
    "compare": "two recordings side by side, or one and the same hand with other settings: figures, picture, window",
    "conformance": "the friction conformance suite, for every model here and for your own renderer",
    "doctor": "check this machine for 1 kHz, and print the commands that fix what is missing",
    "experiment": "psychophysics: run an experiment from one file, resume it, report and export what it found",
    "export": "write a recording as CSV, Parquet, MATLAB or MCAP file",
    "pack": "compress recordings without loss; all commands read packed recordings",
    "reproduce": "reproduce figures and tables of the papers, with the papers' numbers beside ours",
    "sweep": "parameter studies: many simulated sessions, on all processors or on a cluster",
    "verify": "check a recording by the equations, independently of what made it, with one verdict",
}
"""Commands with a separate package. Its module ``command`` defines ``add_options`` and ``run``."""

MOST_VIEWS = 4
"""Maximum number of live views that the command line accepts."""


class _Parser(Parser):
    """Argument parser that exits with an error if its help cannot be written.

    Attributes
    ----------
    write_epilog : callable or None
        Function that returns the epilog of the help. Used where the epilog needs an expensive import.
    """

    write_epilog: Callable[[], str] | None = None

    def format_help(self) -> str:
        """Return the help text, including the epilog from `write_epilog`."""
        if self.write_epilog is not None:
            self.epilog = self.write_epilog()
        return super().format_help()

    def print_help(self, file: Any = None) -> None:
        """Write the help to standard output.

        Exit with `WRONG_REQUEST` if that fails.
        """
        if not _written(self.format_help().rstrip()):
            self.exit(WRONG_REQUEST)


def run_process() -> int:
    """Run `main` as the only task of this process.

    Numba and Matplotlib create several hundred thousand permanent objects on import. The garbage collector therefore
    runs rarely, and not at exit.
    """
    gc.set_threshold(20_000, 20, 20)
    status = main()
    gc.freeze()
    return status


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit status.

    Exit statuses: 0 success; 2 invalid request, or standard output rejects the result; 3 the device was not found or
    cannot be opened; 4 a device, or the disk for the recording, failed during the run; 130 interrupted.
    """
    _open_standard_streams()
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    as_json = "--json" in arguments
    try:
        options = _parser(arguments).parse_args(arguments)
        answer: Answer = options.command(options)
    except HapticError as error:
        status = next(number for kind, number in _STATUS if isinstance(error, kind))
        answer = Answer({"error": str(error)}, status=status, error=str(error))
    except OSError as error:
        answer = Answer({"error": str(error)}, status=WRONG_REQUEST, error=f"{error}.")
    except KeyboardInterrupt:
        with contextlib.suppress(ValueError):  # signal handlers can be set in the main thread only
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # ignore a second Ctrl-C while the answer is written
        answer = Answer({"error": "interrupted"}, status=INTERRUPTED, error="interrupted")
    return _deliver(answer, as_json)


def _open_standard_streams() -> None:
    """Replace closed standard streams by the null device.

    Otherwise the next file that is opened would get the descriptor of a standard stream.
    """
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")


def _deliver(answer: Answer, as_json: bool) -> int:
    """Write `answer` and return its exit status.

    The status is `WRONG_REQUEST` if a successful result cannot be written.
    """
    if answer.error:
        _complain(answer.error)
    text = json.dumps(answer.result, allow_nan=False) if as_json else answer.text
    return answer.status if not text or _written(text) else answer.status or WRONG_REQUEST


def _written(text: str) -> bool:
    """Write `text` to standard output.

    Return False and report the error if it cannot be written completely.
    """
    try:
        print(text, flush=True)
    except BrokenPipeError:  # the reader has closed the pipe: not an error
        _drop_output()
    except OSError as error:
        _complain(f"the result could not be written to standard output ({error.strerror or error}).")
        _drop_output()
        return False
    return True


def _drop_output() -> None:
    """Redirect standard output to the null device, because the interpreter would flush it again at exit."""
    with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), sys.stdout.fileno())


def _complain(line: str) -> None:
    with contextlib.suppress(OSError):  # standard error is unavailable too
        words = f"haptics: {line}"
        print(wrapped(words, 2) if sys.stderr.isatty() else words, file=sys.stderr, flush=True)


def _parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser.

    With `arguments`, add only the options of the commands that they contain.
    """
    parser = _Parser(prog="haptics", description="Render friction on haptic devices at 1 kHz, and identify it.")
    parser.add_argument("--version", action=Version)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    _add_demo(subparsers)
    _add_run(subparsers)
    _add_devices(subparsers)
    _add_replay(subparsers)
    for name, summary in _TOOLS.items():
        tool = subparsers.add_parser(name, help=summary)
        if arguments is None or name in arguments:
            module = importlib.import_module(f"apps.{name}.command")
            module.add_options(tool)
            tool.set_defaults(command=module.run)
    for subparser in subparsers.choices.values():
        subparser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    return parser


def _add_demo(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "demo", help="a session without hardware: virtual joystick, model C, a simulated hand; or one of the gallery"
    )
    gallery.add_options(parser)
    _add_session_options(parser, f"{commands.DEMO_DURATION:g} s")
    parser.set_defaults(
        command=commands.demo, device=None, model=None, config=None, assignments=[], hand=None, rate=None, faults=[]
    )


def _add_run(subparsers: Any) -> None:
    parser = subparsers.add_parser(
        "run",
        help="an interactive session on a device",
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
    parser.add_argument(
        "--hand", metavar="NAME|FILE", help="simulated hand that moves a virtual device, or a CSV file of a path"
    )
    parser.add_argument(
        "--fault",
        dest="faults",
        metavar="NAME@SECONDS",
        action="append",
        default=[],
        help="inject a fault from that time on, for instance nan@2 (repeatable); nan@2+0.05 lasts 0.05 s",
    )
    _add_session_options(parser, "until it is stopped, by Ctrl-C or in the window")
    parser.write_epilog = _faults
    parser.set_defaults(command=commands.run)


def _faults() -> str:
    """Return a list of the faults that can be injected."""
    from devices.faults import FAULTS

    return "faults to inject:\n" + indent(listed({name: kind.description for name, kind in FAULTS.items()}), "  ")


def _add_session_options(parser: argparse.ArgumentParser, by_default: str) -> None:
    parser.add_argument("--duration", metavar="S", type=float, help=f"length of the run [s]; default: {by_default}")
    parser.add_argument("--record", metavar="DIR", help="folder in which the recording is made (default: recordings)")
    parser.add_argument("--headless", action="store_true", help="without any window")
    parser.add_argument(
        "--views",
        metavar="N",
        type=int,
        choices=range(MOST_VIEWS + 1),
        default=1,
        help=f"number of live views on the same run, for instance a second one for a spectator (0 to {MOST_VIEWS}; 0 "
        "with --stage)",
    )
    parser.add_argument(
        "--stage",
        action="store_true",
        help="also show the stage: the plane with its materials as the hand sees it (needs OpenGL)",
    )
    parser.add_argument(
        "--stream",
        dest="streams",
        metavar="KIND[=HOST:PORT]",
        action="append",
        default=[],
        help="send every tick to other programs: udp (JSON datagrams), websocket (a server) or lsl (Lab Streaming "
        "Layer; repeatable)",
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, help="seed of everything random in a virtual device (default 1)"
    )
    parser.add_argument(
        "--clock",
        choices=("wall", "off"),
        help="wall: real time (default); off: as fast as the machine can, virtual devices only, with the same result",
    )
    parser.add_argument("--theme", choices=("auto", "dark", "light"), default="auto", help="colours of the windows")


def _add_devices(subparsers: Any) -> None:
    parser = subparsers.add_parser("devices", help="the devices, what is plugged in, what is missing to use it")
    parser.set_defaults(command=commands.devices)


def _add_replay(subparsers: Any) -> None:
    parser = subparsers.add_parser("replay", help="scrub through a recording, or verify it bit for bit")
    parser.add_argument("recording", metavar="RECORDING", type=Path, help="folder of the recording")
    parser.add_argument("--verify", action="store_true", help="replay every tick and compare bit for bit")
    parser.add_argument("--headless", action="store_true", help="without a window: print a summary and draw a picture")
    parser.add_argument("--theme", choices=("auto", "dark", "light"), default="auto", help="colours of the window")
    parser.set_defaults(command=commands.replay)
