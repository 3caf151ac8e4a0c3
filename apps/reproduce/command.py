"""The command ``haptics reproduce``: the papers' figures and tables, compared with our results."""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from apps.shared.command import Answer, listed, make_folder, select
from apps.shared.terminal import Line, bar

if TYPE_CHECKING:
    from apps.reproduce.outcome import Outcome

FOLDER = "reproductions"

ALL = "all"


REPRODUCTIONS: dict[str, str] = {
    "kikuuwe-implicit": "kikuuwe_implicit:reproduce",
    "kikuuwe-constraints": "kikuuwe_constraints:reproduce",
    "kikuuwe-fig6": "kikuuwe_fig6_7:reproduce_fig6",
    "kikuuwe-fig7": "kikuuwe_fig6_7:reproduce_fig7",
    "kikuuwe-fig8": "kikuuwe_fig8:reproduce",
    "kikuuwe-fig11": "kikuuwe_fig11:reproduce",
    "kikuuwe-fig13": "kikuuwe_fig13_14:reproduce_fig13",
    "kikuuwe-fig14": "kikuuwe_fig13_14:reproduce_fig14",
    "kikuuwe-stability": "kikuuwe_stability:reproduce",
    "kikuuwe-approximation": "kikuuwe_approximation:reproduce",
    "kikuuwe-fig16": "kikuuwe_arm:reproduce_fig16",
    "kikuuwe-fig17": "kikuuwe_arm:reproduce_fig17",
    "kikuuwe-servo": "kikuuwe_servo:reproduce",
    "kikuuwe-fig19": "kikuuwe_joystick:reproduce_fig19",
    "kikuuwe-fig20": "kikuuwe_joystick:reproduce_fig20",
    "kikuuwe-lag": "kikuuwe_joystick:reproduce_lag",
    "weigand-fig2": "weigand_fig2_3:reproduce_fig2",
    "weigand-fig3": "weigand_fig2_3:reproduce_fig3",
    "weigand-fig7": "weigand_fig7_9:reproduce_fig7",
    "weigand-fig8": "weigand_fig7_9:reproduce_fig8",
    "weigand-fig9": "weigand_fig7_9:reproduce_fig9",
    "weigand-table1": "weigand_table1:reproduce",
    "machado-fig3": "machado_figures:reproduce_fig3",
    "machado-fig4": "machado_figures:reproduce_fig4",
    "machado-fig5": "machado_figures:reproduce_fig5",
    "machado-fig6": "machado_figures:reproduce_fig6",
    "machado-fig7": "machado_figures:reproduce_fig7",
    "machado-fig8": "machado_figures:reproduce_fig8",
    "machado-fig9": "machado_figures:reproduce_fig9",
    "machado-fig10": "machado_figures:reproduce_fig10",
}
"""ID to ``module:function`` in `apps.reproduce`, in the order of ``all``. The function returns an `Outcome`."""

_PAPERS = {"kikuuwe": "Kikuuwe et al. 2006", "weigand": "Weigand et al. 2020", "machado": "Machado et al. 2002"}

_TITLES = {
    "kikuuwe-implicit": ("friction laws and their implicit counterparts", "Figs. 4, 5, (16), (52)"),
    "kikuuwe-constraints": ("the models solve their implicit equations and are passive", "(26), (36), (38), (45)"),
    "kikuuwe-fig6": ("model A reaches zero velocity without chattering", "Fig. 6"),
    "kikuuwe-fig7": ("model A crosses zero velocity under a force that turns it round", "Fig. 7"),
    "kikuuwe-fig8": ("model A as a friction law: no threshold to choose", "Fig. 8, (27)"),
    "kikuuwe-fig11": ("stick-slip in two contacts with model-C elements", "Fig. 11"),
    "kikuuwe-fig13": ("model B and its alternative on a velocity ramp", "Fig. 13"),
    "kikuuwe-fig14": ("model D and its alternative sliding to rest", "Fig. 14"),
    "kikuuwe-stability": ("stability of a mass on model C in static friction", "(63)"),
    "kikuuwe-approximation": ("the approximation (46), (57) against the exact solution", "section III-E"),
    "kikuuwe-fig16": ("model A on the virtual arm: path and force of the hand", "Fig. 16"),
    "kikuuwe-fig17": ("model A on the virtual arm: position and force against time", "Fig. 17"),
    "kikuuwe-servo": ("model A on the virtual arm under every servo law: what the hand feels", "section V-A"),
    "kikuuwe-fig19": ("model C on the virtual joystick: path and commanded force", "Fig. 19"),
    "kikuuwe-fig20": ("model C on the virtual joystick: position and force against time", "Fig. 20"),
    "kikuuwe-lag": ("model C on circles: lag of the force, circles that never slip, recoil", "(38)"),
    "weigand-fig2": ("joint friction, discontinuous and smooth", "Fig. 2, (3), (4)"),
    "weigand-fig3": ("torque of the gearbox over its twist, and back", "Fig. 3, (6) to (11)"),
    "weigand-fig7": ("error of the link with flatness-based and with rigid feed-forward", "Fig. 7"),
    "weigand-fig8": ("torque of the motor by flatness-based and by rigid feed-forward", "Fig. 8"),
    "weigand-fig9": ("oscillation of the torque in the gearbox", "Fig. 9"),
    "weigand-table1": ("errors measured and simulated, by servo law", "Table 1"),
    "machado-fig3": ("ideal arm, control of fractional order", "Fig. 3"),
    "machado-fig4": ("ideal arm, PD and PI control", "Fig. 4"),
    "machado-fig5": ("arm with friction in its joints, control of fractional order", "Fig. 5"),
    "machado-fig6": ("arm with friction in its joints, PD and PI control", "Fig. 6"),
    "machado-fig7": ("arm with backlash, re-tuned control of fractional order", "Fig. 7"),
    "machado-fig8": ("arm with backlash, re-tuned PD and PI control", "Fig. 8"),
    "machado-fig9": ("arm with flexible joints, control of fractional order", "Fig. 9"),
    "machado-fig10": ("arm with flexible joints, PD and PI control", "Fig. 10"),
}
"""Description of each reproduction, and its place in the paper."""


def title_of(name: str) -> str:
    """Return the description of a reproduction with the paper."""
    title, place = _TITLES[name]
    return f"{title} ({_PAPERS[name.partition('-')[0]]}, {place})"


def reproduce(name: str) -> Outcome:
    """Import the module of a reproduction and compute it."""
    module, function = REPRODUCTIONS[name].split(":")
    outcome: Outcome = getattr(importlib.import_module(f"apps.reproduce.{module}"), function)()
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
    missed = sum(len(result.missed) for result in results)
    broken = sum(len(result.broken) for result in results)
    answer = {
        "reproductions": [result.as_json() for result in results],
        "all_met": missed == 0,
        "all_guards_hold": broken == 0,
        "summary": str(summary),
    }
    everything = [row for result in results for row in result.rows]
    guards = sum(row.is_guard for row in everything)
    errors = [f"{missed} of {len(everything) - guards} numbers are not met."] if missed else []
    errors += [f"{broken} of {guards} guards do not hold."] if broken else []
    return Answer(answer, describe(results, summary), status=1 if errors else 0, error=" ".join(errors))
