"""Command line of ``haptics``: sub-commands, options and exit statuses.

The modules ``apps.NAME.command`` implement the commands that are not at the end of this module. Heavy imports are
deferred to the functions that need them.
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
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import TYPE_CHECKING, Any

from apps.gallery import command as gallery
from apps.shared.command import Answer, Parser, Version, listed, repeatable
from apps.shared.terminal import print_status, wrapped
from haptics.errors import (
    ConfigurationError,
    DeviceFault,
    DeviceNotFoundError,
    DeviceOpenError,
    HapticError,
    RecordingError,
)

if TYPE_CHECKING:
    from apps.front_ends.front_end import FrontEnd
    from apps.session.run import Outcome

WRONG_REQUEST, NO_DEVICE, DEVICE_FAULT, INTERRUPTED = 2, 3, 4, 130

_STATUS: dict[type[HapticError], int] = {
    ConfigurationError: WRONG_REQUEST,
    RecordingError: WRONG_REQUEST,
    DeviceNotFoundError: NO_DEVICE,
    DeviceOpenError: NO_DEVICE,
    DeviceFault: DEVICE_FAULT,
}

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

DEMO_DURATION = 30.0
"""Duration of the demonstration [s]: a little longer than one cycle of the simulated hand."""

MOST_VIEWS = 4
"""Maximum number of live views that the command line accepts."""

_THEME: dict[str, Any] = {"choices": ("auto", "dark", "light"), "default": "auto"}


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
    # Replace closed standard streams by the null device: a file opened later would get their descriptor.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)
    sys.stdout = sys.stdout or open(os.devnull, "w", encoding="utf-8")
    sys.stderr = sys.stderr or open(os.devnull, "w", encoding="utf-8")
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    as_json = "--json" in arguments
    try:
        options = make_parser(arguments).parse_args(arguments)
        answer: Answer = options.command(options)
    except HapticError as error:
        status = next(number for kind, number in _STATUS.items() if isinstance(error, kind))
        answer = Answer({"error": str(error)}, status=status, error=str(error))
    except OSError as error:
        answer = Answer({"error": str(error)}, status=WRONG_REQUEST, error=f"{error}.")
    except KeyboardInterrupt:
        with contextlib.suppress(ValueError):  # signal handlers can be set in the main thread only
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # ignore a second Ctrl-C while the answer is written
        answer = Answer({"error": "interrupted"}, status=INTERRUPTED, error="interrupted")
    return _deliver(answer, as_json)


def _deliver(answer: Answer, as_json: bool) -> int:
    """Write `answer` and return its exit status.

    The status is `WRONG_REQUEST` if a successful result cannot be written.
    """
    if answer.error:
        print_status(f"haptics: {answer.error}")
    text = json.dumps(answer.result, allow_nan=False) if as_json else answer.text
    return answer.status if not text or _written(text) else answer.status or WRONG_REQUEST


def _written(text: str) -> bool:
    """Write `text` to standard output.

    Return False and report the error if it cannot be written completely.
    """
    try:
        print(text, flush=True)
        return True
    except OSError as error:
        closed = isinstance(error, BrokenPipeError)  # by the reader of the pipe: not an error
        if not closed:
            reason = error.strerror or error
            print_status(f"haptics: the result could not be written to standard output ({reason}).")
        # The interpreter would write to standard output again at exit.
        with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), sys.stdout.fileno())
        return closed


def make_parser(arguments: Sequence[str] | None = None) -> argparse.ArgumentParser:
    """Return the parser.

    With `arguments`, add only the options of the commands that they contain.
    """
    parser = _Parser(prog="haptics", description="Render friction on haptic devices at 1 kHz, and identify it.")
    parser.add_argument("--version", action=Version)
    subparsers = parser.add_subparsers(required=True, metavar="COMMAND", parser_class=_Parser)
    demo = subparsers.add_parser(
        "demo",
        help=(
            "run a session without hardware (virtual joystick, model C, simulated hand), or a "
            "demonstration of the gallery"
        ),
    )
    gallery.add_options(demo)
    run = subparsers.add_parser(
        "run", help="run an interactive session on a device", formatter_class=argparse.RawDescriptionHelpFormatter
    )
    run.write_epilog = _list_faults
    add_run_options(run)
    endless = "until it is stopped, by Ctrl-C or in the window"
    for session, default in ((demo, f"{DEMO_DURATION:g} s"), (run, endless)):
        session.add_argument("--duration", metavar="S", type=float, help=f"length of the run [s]; default: {default}")
        add_session_options(session)
    absent = dict.fromkeys(("config", "hand", "rate"))
    demo.set_defaults(command=_demo, device="virtual-joystick", model="C", assignments=[], faults=[], **absent)
    run.set_defaults(command=_run)
    devices = subparsers.add_parser("devices", help="list devices, connected hardware, and what is missing to use it")
    devices.set_defaults(command=_devices)
    replay = subparsers.add_parser("replay", help="browse a recording, or verify it bit for bit")
    replay.add_argument("recording", metavar="RECORDING", type=Path, help="folder of the recording")
    replay.add_argument("--verify", action="store_true", help="recompute every tick and compare bit for bit")
    replay.add_argument("--headless", action="store_true", help="open no window: print a summary and draw a picture")
    replay.add_argument("--theme", **_THEME, help="colours of the window")
    replay.set_defaults(command=_replay)
    for name, summary in _TOOLS.items():
        tool = subparsers.add_parser(name, help=summary)
        if arguments is None or name in arguments:
            module = importlib.import_module(f"apps.{name}.command")
            module.add_options(tool)
            tool.set_defaults(command=module.run)
    for subparser in subparsers.choices.values():
        subparser.add_argument("--json", action="store_true", help="print one JSON object on standard output")
    return parser


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``haptics run`` that ``haptics demo`` does not have."""
    add = parser.add_argument
    add("--device", metavar="NAME", help="backend name; see 'haptics devices'")
    add("--model", metavar="NAME", help="A, B, C, D or a classic model; see 'haptics devices'")
    add("--config", metavar="FILE.toml", type=Path, help="settings from a file")
    text = "one setting, for instance law.force=3 or element.stiffness=4000 (repeatable)"
    repeatable(parser, "--set", "assignments", "KEY=VALUE", text)
    add("--rate", metavar="HZ", type=float, help="servo rate (default 1000)")
    add("--hand", metavar="NAME|FILE", help="simulated hand that moves a virtual device, or a CSV file of a path")
    text = "inject a fault from this time on, for instance nan@2 (repeatable); nan@2+0.05 lasts 0.05 s"
    repeatable(parser, "--fault", "faults", "NAME@SECONDS", text)


def add_session_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of ``haptics run`` and ``haptics demo``, besides ``--duration``."""
    add = parser.add_argument
    add("--record", metavar="DIR", help="folder for the recording (default: recordings)")
    add("--headless", action="store_true", help="open no window")
    text = (
        f"number of live views on the same run, for instance a second one for a spectator (0 to {MOST_VIEWS}; "
        "0 with --stage)"
    )
    add("--views", metavar="N", type=int, choices=range(MOST_VIEWS + 1), default=1, help=text)
    add("--stage", action="store_true", help="also show the stage: the plane with its materials (needs OpenGL)")
    text = (
        "send every tick to other programs: udp (JSON datagrams), websocket (a server) or lsl (Lab Streaming "
        "Layer; repeatable)"
    )
    repeatable(parser, "--stream", "streams", "KIND[=HOST:PORT]", text)
    text = "let other programs control the run with JSON messages, and serve a page for a browser"
    add("--control", metavar="websocket[=HOST:PORT]", help=text)
    add("--token", metavar="FILE", type=Path, help="file with the token for --control (default: a new token)")
    text = "origin of web pages that may use --control or --stream websocket, such as https://lab.example (repeatable)"
    repeatable(parser, "--allow-origin", "origins", "ORIGIN", text)
    add("--seed", metavar="N", type=int, help="seed of the random numbers of a virtual device (default 1)")
    text = "wall: real time (default); off: as fast as possible, virtual devices only, with the same result"
    add("--clock", choices=("wall", "off"), help=text)
    add("--theme", **_THEME, help="colours of the windows")


def _list_faults() -> str:
    """Return a list of the faults that can be injected."""
    from devices.faults import FAULTS

    return "faults to inject:\n" + indent(listed({name: kind.description for name, kind in FAULTS.items()}), "  ")


# --- commands ---------------------------------------------------------------------------------------------------------


def _demo(options: argparse.Namespace) -> Answer:
    """Run the default demonstration or a gallery entry, with a live view if a display is available.

    The default demonstration is a virtual joystick with model C and a simulated hand.
    """
    if options.list:
        return gallery.list_names()
    if options.name is not None:
        windows, obstacle = open_windows(options)
        return gallery.run(options, windows, _streams(options), obstacle)
    if options.duration is None:
        options.duration = DEMO_DURATION
    return _run(options)


def _run(options: argparse.Namespace) -> Answer:
    """Run sessions with the settings of the file and of ``--set``, overridden by the other options."""
    from haptics.servo.standby import Standby

    with Standby() as standby:  # start before the slow imports below
        from apps.settings.config import gather

        tables = gather(options.config, options.assignments)
        from apps.session.application import Application

        given = {name: getattr(options, name) for name in ("model", "rate", "duration", "seed", "record", "clock")}
        session = tables.setdefault("session", {})
        session.update({name: value for name, value in given.items() if value is not None})
        if options.faults:
            session["faults"] = options.faults
        if options.device is not None:
            tables.setdefault("device", {})["name"] = options.device
        if options.hand is not None:
            from devices.virtual.hands.registry import hand_settings

            tables.setdefault("hand", {}).update(hand_settings(options.hand))
        windows, obstacle = open_windows(options)
        streams, controls = _streams(options), _controls(options)
        application = Application(
            tables, windows=windows, streams=streams, controls=controls, obstacle=obstacle, standby=standby
        )
        return answer_of(application.run())


def answer_of(outcome: Outcome) -> Answer:
    """Return the answer of the command that ran sessions."""
    from apps.session.run import describe_run

    summary, fault = outcome.summary, outcome.fault
    if fault is not None:
        summary["error"] = str(fault)
        return Answer(summary, describe_run(summary), status=4, error=f"{fault} Recording: {summary['recording']}")
    return Answer(summary, describe_run(summary), status=130 if outcome.reason == "interrupted" else 0)


def _controls(options: argparse.Namespace) -> list[Callable[[], FrontEnd]]:
    """Return the factory of the requested remote control, and print its address.

    Raises
    ------
    ConfigurationError
        If it cannot be started.
    """
    if options.control is None:
        if options.token is not None:
            raise ConfigurationError("--token: is for --control; give that too, or leave it out.")
        return []
    from apps.control.server import parse_address, start_control

    address = parse_address(options.control, options.token, tuple(options.origins))
    print_status(f"remote control: {address.url}")
    return [partial(start_control, address)]


def _streams(options: argparse.Namespace) -> list[Callable[[], FrontEnd]]:
    """Return factories of the requested streams.

    Raises
    ------
    ConfigurationError
        If a stream specification is invalid or a stream cannot be started.
    """
    if not options.streams:
        return []
    from apps.stream import open_stream, parse_stream, require_usable

    streams = [parse_stream(text, tuple(options.origins)) for text in options.streams]
    for stream in streams:
        require_usable(stream)
    return [partial(open_stream, stream) for stream in streams]


def open_windows(options: argparse.Namespace) -> tuple[list[Callable[[], FrontEnd]], str]:
    """Return factories of the requested windows, and the reason why there is no live view.

    The reason is empty if there is a live view.

    Raises
    ------
    ConfigurationError
        If several views are requested but no window can be shown, or if no window remains.
    """
    from apps.session.application import HEADLESS
    from apps.stage.launch import stage_obstacle, start_stage
    from apps.view.launch import start_view, window_obstacle

    if not options.views and not options.stage:
        raise ConfigurationError("--views 0: leaves no window; add --stage, or say --headless.")
    stages: list[Callable[[], FrontEnd]] = []
    no_stage = ""
    if options.stage:
        no_stage = HEADLESS if options.headless else stage_obstacle() or ""
        stages = [] if no_stage else [partial(start_stage, options.theme)]
    if not options.views:
        return stages, f"--views 0 was given, and there is no stage ({no_stage})" if no_stage else ""
    if no_stage:
        print_status(f"no stage: {no_stage}.")
    obstacle = HEADLESS if options.headless else window_obstacle()
    if obstacle is None:
        return [*[partial(start_view, options.theme)] * options.views, *stages], ""
    if options.views > 1:
        raise ConfigurationError(f"--views {options.views}: no window can be shown ({obstacle}); leave --views out.")
    return stages, obstacle


def _devices(options: argparse.Namespace) -> Answer:
    """List the supported devices, the connected devices, and missing requirements."""
    from apps import plugged
    from apps.settings.models import fitting
    from devices import describe_backends, refused_plugins

    models, found = fitting(), plugged.survey()
    table: list[dict[str, Any]] = [
        {
            "name": backend.name,
            "causality": str(backend.causality),
            "models": list(models[backend.name]),
            "description": backend.description,
            "package": backend.package or None,
            "missing": [] if backend.virtual else found.missing(backend.name),
        }
        for backend in describe_backends()
    ]
    lines = []
    for row in table:
        head = f"{row['name']:<18} {row['causality']:<11} {row['description']}"
        origin = f"\n{'':31}from {row['package']}" if row["package"] else ""
        lines.append(wrapped(f"{head}\n{'':31}models {', '.join(row['models'])}{origin}", indent=31))
    refused = refused_plugins()
    lines += ["", *(f"left out: {words}" for words in refused), plugged.describe(found)]
    return Answer({"devices": table, "refused": list(refused), **found.result()}, "\n".join(lines))


def _replay(options: argparse.Namespace) -> Answer:
    """Show a recording, or verify it."""
    from haptics.recording.recording import Recording

    recording = Recording(options.recording)
    try:
        if options.verify:
            from apps.verification import examine
            from haptics.recording.checks import OK

            found = examine(recording)
            names = ("ticks", "mismatches", "first_mismatch", "verdict")
            result = {"recording": str(recording.folder), **{name: getattr(found, name) for name in names}}
            text = f"{found.ticks} ticks computed again, {found.mismatches} differ"
            if found.first_mismatch is not None:
                text += f", the first is tick {found.first_mismatch}"
            findings = [f"  {finding.rule}: {finding.words}" for finding in found.findings]
            return Answer(
                {**result, "findings": [finding.as_dict() for finding in found.findings]},
                "\n".join([text, *findings, f"verdict: {found.verdict}"]),
                status=0 if found.verdict == OK else 1,
            )
        from apps.view.launch import window_obstacle

        state = recording.metadata.get("state")
        result = {"recording": str(recording.folder), "ticks": len(recording), "state": state}
        obstacle = None if options.headless else window_obstacle()
        if options.headless or obstacle:
            from apps.shared.picture import draw

            picture = draw(recording)
            why = f"\nno window: {obstacle}." if obstacle else ""
            return Answer({**result, "picture": picture}, f"{len(recording)} ticks; picture: {picture}{wrapped(why)}")
        from apps.view.replay import run as show

        show(recording, recording.metadata, options.theme)
        return Answer(result)
    except HapticError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise RecordingError(
            f"{recording.folder} does not describe its run as a recording should ({type(error).__name__}: {error})."
        ) from error
