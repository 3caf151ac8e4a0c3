"""Command ``haptics demo NAME``: run one demonstration of the gallery, or all of them."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from apps.gallery.registry import ALL, chosen, load
from apps.shared.command import Answer, listed, make_folder
from apps.shared.terminal import Line, bar
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.front_ends.front_end import FrontEnd
    from apps.gallery.report import Result

FOLDER = "gallery"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the gallery to the parser of ``haptics demo``."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="a demonstration of the gallery, or 'all'; see --list")
    parser.add_argument("--list", action="store_true", help="list the demonstrations and what they show")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path(FOLDER), help=f"folder for picture and film (default: {FOLDER})"
    )


def list_names() -> Answer:
    """List the demonstrations."""
    found = {name: load(name) for name in chosen(ALL)}
    table = [{"name": name, "title": one.TITLE, "see": one.GUIDE.see} for name, one in found.items()]
    return Answer({"demonstrations": table}, listed({name: one.TITLE for name, one in found.items()}))


def run(
    options: argparse.Namespace,
    windows: Sequence[Callable[[], FrontEnd]],
    streams: Sequence[Callable[[], FrontEnd]],
    obstacle: str,
) -> Answer:
    """Run the chosen demonstrations, in a window if available, write their files and return the results."""
    from apps.gallery.report import finish
    from apps.gallery.showing import Showing

    for name in ("duration", "seed"):
        if getattr(options, name) is not None:
            raise ConfigurationError(f"--{name}: a demonstration of the gallery has its own; leave it out.")
    names = chosen(options.name)
    make_folder(options.out)
    recordings = Path(options.record or "recordings")
    without_clock = options.clock == "off"
    results: list[Result] = []
    with Line() as line:
        for done, name in enumerate(names):
            module = load(name)
            line.show(f"{bar(done / len(names))} {done + 1} of {len(names)}: {name}")
            showing = Showing(
                name,
                recordings,
                module.GUIDE.caption,
                windows=() if without_clock else windows,
                streams=() if without_clock else streams,
                obstacle=obstacle,
                repeats=options.name != ALL,
            )
            outcome = module.demonstrate(showing)
            results.append(finish(name, module.TITLE, module.GUIDE, outcome, showing.recordings, options.out))
    return _answer(results, alone=options.name != ALL)


def _answer(results: Sequence[Result], *, alone: bool) -> Answer:
    """Combine the results of the demonstrations into the answer of the command."""
    failed = [result.name for result in results if not result.holds]
    error = f"{', '.join(failed)}: what was promised does not hold." if failed else ""
    together = {"demonstrations": [result.as_json() for result in results], "holds": not failed}
    answer = results[0].as_json() if alone else together
    return Answer(answer, "\n\n".join(result.describe() for result in results), status=1 if failed else 0, error=error)
