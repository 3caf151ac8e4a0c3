"""The command ``haptics reproduce``: the papers' figures and tables, compared with our results."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from apps.shared.command import Answer, listed, make_folder, select
from apps.shared.terminal import Line, bar

if TYPE_CHECKING:
    from apps.reproduce.outcome import Outcome

FOLDER = "reproductions"

ALL = "all"

_MODULES: dict[str, dict[str, tuple[str, str]]] = {
    "kikuuwe_implicit": {"implicit": ("friction laws and their implicit counterparts", "Figs. 4, 5, (16), (52)")},
    "kikuuwe_constraints": {
        "constraints": ("the models solve their implicit equations and are passive", "(26), (36), (38), (45)"),
    },
    "kikuuwe_fig6_7": {
        "fig6": ("model A reaches zero velocity without chattering", "Fig. 6"),
        "fig7": ("model A crosses zero velocity under a force that turns it round", "Fig. 7"),
    },
    "kikuuwe_fig8": {"fig8": ("model A as a friction law: no threshold to choose", "Fig. 8, (27)")},
    "kikuuwe_fig11": {"fig11": ("stick-slip in two contacts with model-C elements", "Fig. 11")},
    "kikuuwe_fig13_14": {
        "fig13": ("model B and its alternative on a velocity ramp", "Fig. 13"),
        "fig14": ("model D and its alternative sliding to rest", "Fig. 14"),
    },
    "kikuuwe_stability": {"stability": ("stability of a mass on model C in static friction", "(63)")},
    "kikuuwe_approximation": {
        "approximation": ("the approximation (46), (57) against the exact solution", "section III-E"),
    },
    "kikuuwe_arm": {
        "fig16": ("model A on the virtual arm: path and force of the hand", "Fig. 16"),
        "fig17": ("model A on the virtual arm: position and force against time", "Fig. 17"),
        "servo": ("model A on the virtual arm under every servo law: what the hand feels", "section V-A"),
    },
    "kikuuwe_joystick": {
        "fig19": ("model C on the virtual joystick: path and commanded force", "Fig. 19"),
        "fig20": ("model C on the virtual joystick: position and force against time", "Fig. 20"),
        "lag": ("model C on circles: lag of the force, circles that never slip, recoil", "(38)"),
    },
    "weigand": {
        "fig2": ("joint friction, discontinuous and smooth", "Fig. 2, (3), (4)"),
        "fig3": ("torque of the gearbox over its twist, and back", "Fig. 3, (6) to (11)"),
        "fig7": ("error of the link with flatness-based and with rigid feed-forward", "Fig. 7"),
        "fig8": ("torque of the motor by flatness-based and by rigid feed-forward", "Fig. 8"),
        "fig9": ("oscillation of the torque in the gearbox", "Fig. 9"),
        "table1": ("errors measured and simulated, by servo law", "Table 1"),
    },
    "machado": {
        "fig3": ("ideal arm, control of fractional order", "Fig. 3"),
        "fig4": ("ideal arm, PD and PI control", "Fig. 4"),
        "fig5": ("arm with friction in its joints, control of fractional order", "Fig. 5"),
        "fig6": ("arm with friction in its joints, PD and PI control", "Fig. 6"),
        "fig7": ("arm with backlash, re-tuned control of fractional order", "Fig. 7"),
        "fig8": ("arm with backlash, re-tuned PD and PI control", "Fig. 8"),
        "fig9": ("arm with flexible joints, control of fractional order", "Fig. 9"),
        "fig10": ("arm with flexible joints, PD and PI control", "Fig. 10"),
    },
}
"""Module in `apps.reproduce` to its reproductions, each with its description and its place in the paper.

The module has a function ``reproduce``, or several such as ``reproduce_fig6``, which returns an `Outcome`.
"""

REPRODUCTIONS: dict[str, tuple[str, str, str]] = {
    f"{module.partition('_')[0]}-{part}": (module, title, place)
    for module, parts in _MODULES.items()
    for part, (title, place) in parts.items()
}
"""ID to module, description and place in the paper, in the order of ``all``."""

_PAPERS = {"kikuuwe": "Kikuuwe et al. 2006", "weigand": "Weigand et al. 2020", "machado": "Machado et al. 2002"}


def title_of(name: str) -> str:
    """Return the description of a reproduction with the paper."""
    _, title, place = REPRODUCTIONS[name]
    return f"{title} ({_PAPERS[name.partition('-')[0]]}, {place})"


def reproduce(name: str) -> Outcome:
    """Import the module of a reproduction and compute it."""
    module: Any = importlib.import_module(f"apps.reproduce.{REPRODUCTIONS[name][0]}")
    function = getattr(module, f"reproduce_{name.partition('-')[2]}", None) or module.reproduce
    outcome: Outcome = function()
    return outcome


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("ids", metavar="ID", nargs="*", help="IDs, or 'all' (default); see --list")
    parser.add_argument(
        "--out", metavar="DIR", type=Path, default=Path(FOLDER), help=f"folder for the files (default: {FOLDER})"
    )
    parser.add_argument("--list", action="store_true", help="list the IDs with their titles")


def run(options: argparse.Namespace) -> Answer:
    """Compute the requested reproductions, write their files and compare the results."""
    names = select("reproduction", options.ids, REPRODUCTIONS, ALL)
    if options.list:
        titles = {name: title_of(name) for name in names}
        entries = [{"id": name, "title": title} for name, title in titles.items()]
        return Answer({"reproductions": entries}, listed(titles))
    from apps.reproduce.report import describe, write, write_summary

    make_folder(options.out)
    results = []
    with Line() as line:
        for done, name in enumerate(names):
            line.show(f"{bar(done / len(names))} {done + 1} of {len(names)}: {name}")
            results.append(write(name, title_of(name), reproduce(name), options.out))
    summary = write_summary(results, options.out)
    rows = [row for result in results for row in result.rows]
    numbers, guards = ([row.holds for row in rows if row.is_guard == is_guard] for is_guard in (False, True))
    answer = {
        "reproductions": [result.as_json() for result in results],
        "all_met": all(numbers),
        "all_guards_hold": all(guards),
        "summary": str(summary),
    }
    errors = [] if all(numbers) else [f"{numbers.count(False)} of {len(numbers)} numbers are not met."]
    errors += [] if all(guards) else [f"{guards.count(False)} of {len(guards)} guards do not hold."]
    return Answer(answer, describe(results, summary), status=1 if errors else 0, error=" ".join(errors))
