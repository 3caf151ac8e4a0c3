"""Wrongs done to the contact: friction, velocities, displacements, law and element."""

from __future__ import annotations

import numpy as np

from tests.apps.verify.forging import Expected, Forgery, NotHere, wrong


@wrong("a friction force scaled by 1.01")
def _scaled_force(forged: Forgery) -> Expected:
    k = forged.pick(forged.good & (forged.norm("sliding_velocity") > 0) & (forged.norm("friction_force") > 1e-3))
    forged.rows["friction_force"][k] *= 1.01
    return Expected("law", int(forged.rows["tick"][k]))


@wrong("all friction forces scaled by 1 + 1e-9")
def _scaled_forces(forged: Forgery) -> Expected:
    sliding = forged.good & (forged.norm("sliding_velocity") > 1e-4) & (forged.norm("friction_force") > 0.1)
    if "closed-form" in str(forged.settings) or "custom" in str(forged.settings):
        raise NotHere  # a text has its own rounding
    forged.pick(sliding)
    forged.rows["friction_force"] *= 1.0 + 1e-9
    return Expected("law")


@wrong("a friction force at rest scaled by 1.01")
def _scaled_rest(forged: Forgery) -> Expected:
    k = forged.pick(forged.good & (forged.rows["sticking"] != 0) & (forged.norm("friction_force") > 0.05))
    forged.rows["friction_force"][k] *= 1.01
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("a friction force turned by a degree")
def _turned_force(forged: Forgery) -> Expected:
    k = forged.pick(forged.good & (forged.norm("sliding_velocity") > 0) & (forged.norm("friction_force") > 1e-2))
    c, s = np.cos(np.radians(1.0)), np.sin(np.radians(1.0))
    forged.rows["friction_force"][k] = np.array([[c, -s], [s, c]]) @ forged.rows["friction_force"][k]
    return Expected("law", int(forged.rows["tick"][k]))


@wrong("a sliding velocity scaled by 1.01")
def _scaled_velocity(forged: Forgery) -> Expected:
    k = forged.pick(forged.good & (forged.norm("sliding_velocity") > 1e-3))
    forged.rows["sliding_velocity"][k] *= 1.01
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("a contact that creeps at rest")
def _creeping(forged: Forgery) -> Expected:
    k = forged.pick(forged.good & (forged.rows["sticking"] != 0))
    forged.rows["sliding_velocity"][k] = 1e-7, 0.0
    return Expected("sticking", int(forged.rows["tick"][k]))


@wrong("the word for sticking turned")
def _turned_word(forged: Forgery) -> Expected:
    k = forged.pick(forged.good)
    forged.rows["sticking"][k] = 1 - forged.rows["sticking"][k]
    return Expected("sticking", int(forged.rows["tick"][k]))


@wrong("a displacement shifted by a micrometre")
def _shifted_displacement(forged: Forgery) -> Expected:
    if forged.settings[0]["model"] == "A":
        raise NotHere
    k = forged.pick(forged.good & (forged.rows["gate"] == 1.0) & ((forged.rows["permission"] & 3) == 0))
    _shift(forged, slice(k, k + 1))
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("all displacements shifted from a tick on")
def _shifted_displacements(forged: Forgery) -> Expected:
    if forged.settings[0]["model"] == "A":
        raise NotHere
    k = forged.pick(forged.good & (forged.rows["gate"] == 1.0) & ((forged.rows["permission"] & 3) == 0))
    _shift(forged, slice(k, None))
    return Expected("equations", int(forged.rows["tick"][k]))


def _shift(forged: Forgery, where: slice) -> None:
    forged.rows["displacement"][where, 0] += 1e-6
    if forged.impedance:
        forged.rows["proxy"][where] = forged.rows["position"][where] - forged.rows["displacement"][where]


@wrong("a proxy shifted")
def _shifted_proxy(forged: Forgery) -> Expected:
    k = forged.pick(forged.good)
    forged.rows["proxy"][k, 1] += 1e-9
    return Expected("proxy", int(forged.rows["tick"][k]))


@wrong("an output scaled by 1.01")
def _scaled_output(forged: Forgery) -> Expected:
    moves = forged.norm("command_unlimited") > 0.1 if forged.impedance else forged.norm("sliding_velocity") > 1e-3
    k = forged.pick(forged.good & moves)
    forged.rows["command_unlimited"][k] *= 1.01
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("a velocity of the handle, or a force of the hand, made larger")
def _other_input(forged: Forgery) -> Expected:
    """An input of the element; it must be heard."""
    name, step = ("velocity", 1e-4) if forged.impedance else ("force", 1e-2)
    k = forged.pick(forged.good & (forged.rows["gate"] == 1.0) & (forged.rows["tick"] > 320))
    forged.rows[name][k, 0] += step
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("what two ticks hold swapped")
def _swapped_content(forged: Forgery) -> Expected:
    k = forged.pick(forged.good & (forged.norm("sliding_velocity") > 1e-2) & (np.arange(len(forged.rows)) < 450))
    kept = forged.rows[["tick", "time"]].copy()
    forged.rows[[k, k + 1]] = forged.rows[[k + 1, k]]
    for name in ("tick", "time"):
        forged.rows[name] = kept[name]
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("settings in force before they were")
def _too_early(forged: Forgery) -> Expected:
    changes = np.flatnonzero(np.diff(forged.rows["settings_version"]))
    for k in changes:
        before = slice(k - 20, k + 1)
        entries = [forged.settings[forged.rows["settings_version"][k + i]] for i in (0, 1)]
        slides = forged.good[before] & (forged.norm("sliding_velocity")[before] > 1e-3)
        if k > 40 and slides.any() and entries[0]["law"] != entries[1]["law"]:
            forged.rows["settings_version"][before] = forged.rows["settings_version"][k + 1]
            return Expected("law")
    raise NotHere


@wrong("the law edited in journal and configuration")
def _other_law(forged: Forgery) -> Expected:
    sliding = forged.good & (forged.norm("sliding_velocity") > 1e-4) & (forged.rows["settings_version"] == 0)
    forged.pick(sliding)
    law = forged.settings[0]["law"]
    name = next(
        name for name in ("force", "kinetic_force", "force_x", "forward_force", "kinetic", "low") if name in law
    )
    law[name] *= 1.01
    forged.metadata["configuration"]["law"] = law
    return Expected("law")


@wrong("the text of a law edited")
def _other_text(forged: Forgery) -> Expected:
    law = forged.settings[0]["law"]
    if "source" not in law:
        raise NotHere
    forged.pick(forged.good & (forged.norm("sliding_velocity") > 0) & (forged.rows["settings_version"] == 0))
    law["source"] = law["source"].replace("return ", "return 0.001 + ")
    forged.metadata["configuration"]["law"] = law
    return Expected("law")


@wrong("the element edited in journal and configuration")
def _other_element(forged: Forgery) -> Expected:
    moving = forged.good & (forged.norm("friction_force") > 0.1) & (forged.rows["settings_version"] == 0)
    moving[1:] &= np.abs(np.diff(forged.rows["sliding_velocity"][:, 0])) > 1e-4
    forged.pick(moving)
    element = forged.settings[0]["element"]
    name = str(forged.choose.choice(list(element)))
    element[name] *= 1.05
    forged.metadata["configuration"]["element"] = element
    return Expected("equations")


@wrong("the law edited in the journal alone")
def _other_journal(forged: Forgery) -> Expected:
    law = forged.settings[0]["law"]
    name = next(name for name, value in law.items() if isinstance(value, float) and value)
    law[name] *= 1.01
    return Expected("configuration")
