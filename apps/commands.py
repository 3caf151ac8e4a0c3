"""Implementation of the built-in sub-commands.

Heavy imports are deferred to the functions that need them.
"""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from apps.gallery import command as gallery
from apps.shared.answer import Answer
from apps.shared.words import wrapped
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.front_ends.front_end import FrontEnd
    from apps.session.outcome import Outcome
    from apps.settings.models import Table
    from haptics.recording.recording import Recording

DEMO_DURATION = 30.0
"""Duration of the demonstration [s]: a little longer than one cycle of the simulated hand."""


def demo(options: Namespace) -> Answer:
    """Run the default demonstration or a gallery entry, with a live view if a display is available.

    The default demonstration is a virtual joystick with model C and a simulated hand.
    """
    if options.list:
        return gallery.list_names()
    if options.name is not None:
        windows, obstacle = _windows(options)
        return gallery.run(options, windows, _streams(options), obstacle)
    if options.duration is None:
        options.duration = DEMO_DURATION
    return _session(options, lambda: {"device": {"name": "virtual-joystick"}, "session": {"model": "C"}})


def run(options: Namespace) -> Answer:
    """Run an interactive session."""

    def settings() -> dict[str, Table]:
        from apps.settings.config import gather

        return gather(options.config, options.assignments)

    return _session(options, settings)


def _session(options: Namespace, settings: Callable[[], dict[str, Table]]) -> Answer:
    from haptics.servo.standby import Standby

    with Standby() as standby:  # start before the slow imports below
        tables = settings()
        from apps.session.application import Application

        _lay_options(tables, options)
        windows, obstacle = _windows(options)
        application = Application(
            tables, windows=windows, streams=_streams(options), obstacle=obstacle, standby=standby
        )
        return _answer(application.run())


def _streams(options: Namespace) -> list[Callable[[], FrontEnd]]:
    """Return factories of the requested streams.

    Raises
    ------
    ConfigurationError
        If a stream specification is invalid or a stream cannot be started.
    """
    if not options.streams:
        return []
    from apps.stream.address import parse_stream, require_usable
    from apps.stream.launch import open_stream

    streams = [parse_stream(text) for text in options.streams]
    for stream in streams:
        require_usable(stream)
    return [partial(open_stream, stream) for stream in streams]


def _windows(options: Namespace) -> tuple[list[Callable[[], FrontEnd]], str]:
    """Return factories of the requested windows, and the reason why there is no live view.

    The reason is empty if there is a live view.

    Raises
    ------
    ConfigurationError
        If several views are requested but no window can be shown, or if no window remains.
    """
    from apps.session.application import HEADLESS, print_status
    from apps.stage.launch import StageLink
    from apps.view.launch import ViewLink, window_obstacle

    if not options.views and not options.stage:
        raise ConfigurationError("--views 0: leaves no window; add --stage, or say --headless.")
    missing = _why_no_stage(options)
    stages: list[Callable[[], FrontEnd]] = []
    if options.stage and not missing:
        stages.append(partial(StageLink, options.theme))
    if not options.views:
        return stages, f"--views 0 was given, and there is no stage ({missing})" if missing else ""
    if missing:
        print_status(f"no stage: {missing}.")
    obstacle = HEADLESS if options.headless else window_obstacle()
    if obstacle is None:
        return [*[partial(ViewLink, options.theme)] * options.views, *stages], ""
    if options.views > 1:
        raise ConfigurationError(f"--views {options.views}: no window can be shown ({obstacle}); leave --views out.")
    return stages, obstacle


def _why_no_stage(options: Namespace) -> str:
    """Return the reason why a requested stage cannot be shown, or an empty string."""
    from apps.session.application import HEADLESS
    from apps.stage.launch import stage_obstacle

    if not options.stage:
        return ""
    return HEADLESS if options.headless else stage_obstacle() or ""


def _lay_options(tables: dict[str, Table], options: Namespace) -> None:
    """Override the settings with the options of the command line."""
    session = {name: getattr(options, name) for name in ("model", "rate", "duration", "seed", "record", "clock")}
    tables.setdefault("session", {}).update({name: value for name, value in session.items() if value is not None})
    if options.faults:
        tables["session"]["faults"] = options.faults
    if options.device is not None:
        tables.setdefault("device", {})["name"] = options.device
    if options.hand is not None:
        from devices.virtual.hands.registry import hand_settings

        tables.setdefault("hand", {}).update(hand_settings(options.hand))


def _answer(outcome: Outcome) -> Answer:
    from apps.session.report import describe

    summary = outcome.summary
    if outcome.fault is not None:
        summary["error"] = str(outcome.fault)
        message = f"{outcome.fault} Recording: {summary['recording']}"
        return Answer(summary, describe(summary), status=4, error=message)
    return Answer(summary, describe(summary), status=130 if outcome.reason == "interrupted" else 0)


def devices(options: Namespace) -> Answer:
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
    refused = refused_plugins()
    lines = [*(_in_words(row) for row in table), "", *(f"left out: {words}" for words in refused)]
    result = {"devices": table, "refused": list(refused), **found.result()}
    return Answer(result, "\n".join([*lines, plugged.describe(found)]))


def _in_words(row: dict[str, Any]) -> str:
    """Format one row of the device table, wrapped to the width of the terminal."""
    head = f"{row['name']:<18} {row['causality']:<11} {row['description']}"
    origin = f"\n{'':31}from {row['package']}" if row["package"] else ""
    return wrapped(f"{head}\n{'':31}models {', '.join(row['models'])}{origin}", indent=31)


def replay(options: Namespace) -> Answer:
    """Show a recording, or verify it."""
    from haptics.errors import HapticError, RecordingError
    from haptics.recording.recording import Recording

    recording = Recording(options.recording)
    try:
        return _verify(recording) if options.verify else _show(recording, options)
    except HapticError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise RecordingError(
            f"{recording.folder} does not describe its run as a recording should ({type(error).__name__}: {error})."
        ) from error


def _verify(recording: Recording) -> Answer:
    from apps.verification import examine
    from haptics.recording.checks import OK

    found = examine(recording)
    result = {
        "recording": str(recording.folder),
        "ticks": found.ticks,
        "mismatches": found.mismatches,
        "first_mismatch": found.first_mismatch,
        "verdict": found.verdict,
        "findings": [finding.as_dict() for finding in found.findings],
    }
    text = f"{found.ticks} ticks computed again, {found.mismatches} differ"
    if found.first_mismatch is not None:
        text += f", the first is tick {found.first_mismatch}"
    lines = [text, *(f"  {finding.rule}: {finding.words}" for finding in found.findings), f"verdict: {found.verdict}"]
    return Answer(result, "\n".join(lines), status=0 if found.verdict == OK else 1)


def _show(recording: Recording, options: Namespace) -> Answer:
    from apps.shared.picture import draw
    from apps.view.launch import window_obstacle

    result = {
        "recording": str(recording.folder),
        "ticks": len(recording),
        "state": recording.metadata.get("state"),
    }
    obstacle = None if options.headless else window_obstacle()
    if options.headless or obstacle:
        picture = draw(recording)
        why = f"\nno window: {obstacle}." if obstacle else ""
        return Answer({**result, "picture": picture}, f"{len(recording)} ticks; picture: {picture}{wrapped(why)}")
    from apps.view.replay import run as show

    show(recording, recording.metadata, options.theme)
    return Answer(result)
