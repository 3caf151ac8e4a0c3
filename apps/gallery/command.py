"""Command ``haptics demo NAME``: run one demonstration of the gallery, or all of them."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.shared.command import Answer, listed, make_folder, select
from apps.shared.terminal import Line, bar
from haptics.errors import ConfigurationError

if TYPE_CHECKING:
    from apps.front_ends.front_end import FrontEnd

ALL = "all"

DEMONSTRATIONS = ("holds", "materials", "stick-slip", "four-models", "encoder", "delay", "arm", "threshold")
"""Names of the demonstrations, in the order of ``all``."""


def load(name: str) -> Any:
    """Import the module of a demonstration, with ``TITLE``, ``GUIDE`` and ``demonstrate`` (`apps.gallery.minutes`)."""
    return importlib.import_module(f"apps.gallery.minutes.{name.replace('-', '_')}")


FOLDER = "gallery"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the gallery to the parser of ``haptics demo``."""
    parser.add_argument("name", metavar="NAME", nargs="?", help="a demonstration of the gallery, or 'all'; see --list")
    parser.add_argument("--list", action="store_true", help="list the demonstrations")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path(FOLDER), help=f"folder for picture and film (default: {FOLDER})"
    )


def list_names() -> Answer:
    """List the demonstrations."""
    found = {name: load(name) for name in DEMONSTRATIONS}
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
    names = select("demonstration", [options.name], DEMONSTRATIONS, ALL)
    make_folder(options.out)
    recordings = Path(options.record or "recordings")
    without_clock = options.clock == "off"
    results: list[Answer] = []
    with Line() as line:
        for done, name in enumerate(names):
            module = load(name)
            line.show(f"{bar(done / len(names))} {done + 1} of {len(names)}: {name}")
            showing = Showing(
                name,
                recordings,
                f"{module.GUIDE.do} {module.GUIDE.feel}",
                windows=() if without_clock else windows,
                streams=() if without_clock else streams,
                obstacle=obstacle,
                repeats=options.name != ALL,
            )
            results.append(finish(showing, module.TITLE, module.GUIDE, module.demonstrate(showing), options.out))
    failed = [name for name, one in zip(names, results, strict=True) if not one.result["holds"]]
    error = f"{', '.join(failed)}: what was promised does not hold." if failed else ""
    together = {"demonstrations": [one.result for one in results], "holds": not failed}
    result = together if options.name == ALL else results[0].result
    return Answer(result, "\n\n".join(one.text for one in results), status=1 if failed else 0, error=error)
