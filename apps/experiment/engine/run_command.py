"""Command ``haptics experiment run``: run sessions with a participant or with simulated observers."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.shared.answer import Answer
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.experiment.engine.opening import Request


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the sub-command."""
    parser.add_argument("file", metavar="FILE.toml", type=Path, help="the experiment")
    parser.add_argument(
        "--observer", choices=("simulated",), help="let an observer in software answer, without a clock"
    )
    parser.add_argument(
        "--clock",
        choices=("wall", "off"),
        help="of an observer: off: as fast as the machine can, as a rule on virtual devices; wall: real time",
    )
    parser.add_argument("--participant", metavar="CODE", help="code of the participant, never a name")
    parser.add_argument("--participants", metavar="N", type=int, help="so many simulated participants, sim01 and so on")
    parser.add_argument(
        "--session", metavar="N", type=int, default=1, help="which session of the participant (default 1)"
    )
    parser.add_argument("--seed", metavar="N", type=int, help="seed of everything random, in place of the file's")
    parser.add_argument("--out", metavar="DIR", type=Path, default=Path("experiments"), help="folder of all sessions")
    parser.add_argument("--workers", metavar="N", type=int, default=0, help="processes; default: one a processor")
    parser.add_argument(
        "--field",
        dest="fields",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="what is known of a participant",
    )
    parser.add_argument(
        "--screens", action="store_true", help="rehearsal: an observer answers in real time, and both screens are shown"
    )
    parser.add_argument("--lsl", action="store_true", help="stream ticks and records by the Lab Streaming Layer")


def run(options: argparse.Namespace) -> Answer:
    """Run one or several sessions."""
    from apps.experiment.design import read_design
    from apps.experiment.engine.running import run_session, run_sessions

    requests = _requests(options)
    if len(requests) == 1:
        result = run_session(read_design(options.file), requests[0])
        return Answer(result, describe(result))
    results = run_sessions(options.file, requests, options.workers)
    together = {
        "folder": str(options.out),
        "participant": [one["participant"] for one in results],
        "trials": sum(one["trials"] for one in results),
        "repeated": sum(one["repeated"] for one in results),
        "journal": [one["journal"] for one in results],
        "sessions": results,
    }
    return Answer(together, "\n".join(describe(one) for one in results))


def _requests(options: argparse.Namespace) -> list[Request]:
    from apps.experiment.design import read_design
    from apps.experiment.engine.opening import Manner, Request, with_seed

    simulated = options.observer == "simulated"
    count = options.participants
    if count is not None and (not simulated or count < 1 or options.participant):
        raise ConfigurationError(
            f"--participants {count}: must be at least 1, with --observer simulated and without --participant."
        )
    if options.lsl and count is not None:
        raise ConfigurationError("--lsl: streams one session; leave out --participants.")
    if not simulated and not options.participant:
        raise ConfigurationError("--participant is missing: the code of the participant, such as P01; never a name.")
    seed = with_seed(read_design(options.file), options.seed)
    codes = [f"sim{number + 1:02d}" for number in range(count)] if count else [options.participant or "sim01"]
    fields = dict(_field(text) for text in options.fields)
    if options.screens and (count is not None or options.clock == "off"):
        raise ConfigurationError("--screens: shows one session in real time; leave out --participants and --clock off.")
    manner = Manner(options.clock == "wall", options.lsl, options.screens)
    return [Request(code, options.session, seed, options.out, fields, simulated, manner) for code in codes]


def _field(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not name.strip():
        raise ConfigurationError(f"--field {text}: must have the form name=value, for instance age_band=20-29.")
    return name.strip(), value.strip()


def describe(result: dict[str, Any]) -> str:
    """Return the summary of a session as text."""
    lines = [
        f"participant {result['participant']}, session {result['session']}: {result['trials']} trials, "
        f"{result['repeated']} repeated; {result['reason']}",
        f"journal: {result['journal']}",
    ]
    for name, report in result["tracks"].items():
        if report.get("estimate") is not None:
            target = report.get("target_percent")
            where = f" at {target:.0f} % correct" if target is not None else ""
            lines.append(f"  {name}: {report['estimate']:.4g}{where}, after {report['trials']} trials")
    return "\n".join(lines)
