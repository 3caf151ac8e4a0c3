"""Seeded falsifications of recordings: each knows the rule that must find it, and the first tick.

The forger knows the format: unless a falsification concerns them, hash and certificate are recomputed after it.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from apps.verify.check import verify
from apps.verify.findings import OK
from haptics.device import Causality
from haptics.recording.certificate import Fitness
from haptics.recording.recording import METADATA, SETTINGS, TICKS
from haptics.recording.tick_file import TickTable
from haptics.rendering.envelope import ENVELOPE_FLAGS, UNUSABLE
from tests.certificates import certificate, felt, flags_seen

Mask = NDArray[np.bool_]


class NotApplicable(Exception):
    """A falsification would not change anything in this recording."""


@dataclass
class Forgery:
    """A recording that is being falsified; `save` writes changed rows, metadata and settings back.

    Attributes
    ----------
    folder : Path
        Folder of the recording.
    choose : Generator
        Random choices.
    resealed : bool
        Whether hash and certificate are recomputed.
    """

    folder: Path
    choose: np.random.Generator
    resealed: bool = True

    def __post_init__(self):
        self.rows: Any = np.load(self.folder / TICKS)
        self.metadata: dict[str, Any] = json.loads((self.folder / METADATA).read_text())
        self.settings = [json.loads(line) for line in (self.folder / SETTINGS).read_text().splitlines()]

    @property
    def impedance(self):
        return bool(self.metadata["device"]["causality"] == "impedance")

    def norm(self, name):
        values: NDArray[np.float64] = np.hypot(*self.rows[name].T)
        return values

    @property
    def good(self):
        """Ticks in which the element stepped, as in the tick before."""
        fine = (self.rows["status"] & UNUSABLE) == 0
        fine[1:] &= fine[:-1]
        fine[0] = False
        return np.asarray(fine)

    @property
    def steady(self):
        """Good ticks without fading in which the envelope passes the command of the element."""
        same = (self.rows["command"] == self.rows["command_unlimited"]).all(axis=1)
        return np.asarray(self.good & same & ((self.rows["status"] & ENVELOPE_FLAGS) == 0))

    def pick(self, where):
        """Choose one of the rows."""
        found = np.flatnonzero(where)
        if not len(found):
            raise NotApplicable
        return int(self.choose.choice(found))

    def save(self):
        np.save(self.folder / TICKS, self.rows)
        if self.resealed:
            self.metadata["rows_sha256"] = TickTable(self.folder / TICKS).sha256()
            session, rate = self.metadata["configuration"]["session"], self.metadata["rate_hz"]
            planned = round(session["duration"] * rate) if self.metadata["reason"] == "completed" else None
            timing = certificate(self.rows, len(self.rows), planned, 1.0 / rate)
            unfit = Fitness().evaluate(timing, self.metadata["error"])
            self.metadata["certificate"] = {**timing, "fit": not unfit, "unfit_because": unfit}
            causality = Causality(self.metadata["device"]["causality"])
            self.metadata |= {"flags": flags_seen(self.rows), **felt(self.rows, causality)}
        (self.folder / METADATA).write_text(json.dumps(self.metadata))
        (self.folder / SETTINGS).write_text("".join(json.dumps(entry) + "\n" for entry in self.settings))


def copy_of(recording, folder, *seed):
    """Copy a recording in order to falsify the copy."""
    shutil.copytree(recording, folder)
    return Forgery(folder, np.random.default_rng(seed or 3))


def assert_honest(folder, share=0.5):
    """Verify a recording without any finding, and with residuals below a `share` of the rounding bounds."""
    run, found = verify(folder)
    assert (found.violations, found.missing, found.verdict) == ([], [], OK)
    assert run.count == len(run.source.rows)
    assert max(one.share for one in found.residuals.values()) < share
    return found


@dataclass(frozen=True)
class Expected:
    """The expected finding.

    Attributes
    ----------
    rule : str
        The rule.
    tick : int or None
        The tick that must be named, or the one after it; None if no tick is named.
    missing : bool
        Whether something is missing, instead of violated.
    """

    rule: str
    tick: int | None = None
    missing: bool = False


Wrong = Callable[[Forgery], Expected]
WRONGS: dict[str, Wrong] = {}


def wrong(name):
    def enter(function):
        WRONGS[name] = function
        return function

    return enter


def at_tick(name, rule, change, where=lambda forged: forged.good):
    """Enter a change of one random row, which the rule must find at its tick."""

    @wrong(name)
    def falsify(forged):
        k = forged.pick(where(forged))
        change(forged, k)
        return Expected(rule, int(forged.rows["tick"][k]))


def edited(name, rule, change, applies=lambda forged: True):
    """Enter a change of the description, which the rule must find."""

    @wrong(name)
    def falsify(forged):
        if not applies(forged):
            raise NotApplicable
        change(forged)
        return Expected(rule)


def scale(column, factor):
    def change(forged, k):
        forged.rows[column][k] *= factor

    return change


def put(column, value):
    def change(forged, k):
        forged.rows[column][k] = value(forged, k)

    return change


def wrongs(count, recordings):
    """Yield number, name and first recording of `count` falsifications."""
    names = list(WRONGS)
    for number in range(count):
        yield number, names[number % len(names)], (7 * number + number // len(names)) % recordings


# Friction, velocities, displacements, law and element


def slides(forged, speed=0.0, force=-1.0):
    return forged.good & (forged.norm("sliding_velocity") > speed) & (forged.norm("friction_force") > force)


def sticks(forged, force=-1.0):
    return forged.good & (forged.rows["sticking"] != 0) & (forged.norm("friction_force") > force)


def turned_by_a_degree(forged, k):
    c, s = np.cos(np.radians(1.0)), np.sin(np.radians(1.0))
    return np.array([[c, -s], [s, c]]) @ forged.rows["friction_force"][k]


at_tick("friction force * 1.01", "law", scale("friction_force", 1.01), lambda f: slides(f, force=1e-3))
at_tick("friction force turned", "law", put("friction_force", turned_by_a_degree), lambda f: slides(f, force=1e-2))
at_tick("friction force at rest * 1.01", "equations", scale("friction_force", 1.01), lambda f: sticks(f, 0.05))
at_tick("sliding velocity * 1.01", "equations", scale("sliding_velocity", 1.01), lambda f: slides(f, 1e-3))
at_tick("creep at rest", "sticking", put("sliding_velocity", lambda f, k: (1e-7, 0.0)), sticks)
at_tick("sticking inverted", "sticking", put("sticking", lambda f, k: 1 - f.rows["sticking"][k]))
at_tick("proxy shifted", "proxy", put("proxy", lambda f, k: f.rows["proxy"][k] + (0.0, 1e-9)))
at_tick(
    "output * 1.01",
    "equations",
    scale("command_unlimited", 1.01),
    lambda f: f.good & (f.norm("command_unlimited") > 0.1 if f.impedance else f.norm("sliding_velocity") > 1e-3),
)


@wrong("all friction forces * (1 + 1e-9)")
def _scaled_forces(forged):
    if "closed-form" in str(forged.settings) or "custom" in str(forged.settings):
        raise NotApplicable  # custom laws are rounded differently
    forged.pick(slides(forged, 1e-4, 0.1))
    forged.rows["friction_force"] *= 1.0 + 1e-9
    return Expected("law")


@wrong("displacements shifted from a tick on")
def _shifted_displacements(forged):
    if forged.settings[0]["model"] == "A":
        raise NotApplicable
    k = forged.pick(forged.good & (forged.rows["gate"] == 1.0) & ((forged.rows["permission"] & 3) == 0))
    forged.rows["displacement"][k:, 0] += 1e-6
    if forged.impedance:
        forged.rows["proxy"][k:] = forged.rows["position"][k:] - forged.rows["displacement"][k:]
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("input of the element increased")
def _other_input(forged):
    name, step = ("velocity", 1e-4) if forged.impedance else ("force", 1e-2)
    k = forged.pick(forged.good & (forged.rows["gate"] == 1.0) & (forged.rows["tick"] > 320))
    forged.rows[name][k, 0] += step
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("contents of two ticks swapped")
def _swapped_content(forged):
    k = forged.pick(slides(forged, 1e-2) & (np.arange(len(forged.rows)) < 450))
    kept = forged.rows[["tick", "time"]].copy()
    forged.rows[[k, k + 1]] = forged.rows[[k + 1, k]]
    for name in ("tick", "time"):
        forged.rows[name] = kept[name]
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("settings in force too early")
def _too_early(forged):
    for k in np.flatnonzero(np.diff(forged.rows["settings_version"])):
        before = slice(k - 20, k + 1)
        entries = [forged.settings[forged.rows["settings_version"][k + i]] for i in (0, 1)]
        if k > 40 and slides(forged, 1e-3)[before].any() and entries[0]["law"] != entries[1]["law"]:
            forged.rows["settings_version"][before] = forged.rows["settings_version"][k + 1]
            return Expected("law")
    raise NotApplicable


@wrong("law edited in journal and configuration")
def _other_law(forged):
    forged.pick(slides(forged, 1e-4) & (forged.rows["settings_version"] == 0))
    law = forged.settings[0]["law"]
    names = ("force", "kinetic_force", "force_x", "forward_force", "kinetic", "low")
    law[next(name for name in names if name in law)] *= 1.01
    forged.metadata["configuration"]["law"] = law
    return Expected("law")


@wrong("source of a law edited")
def _other_text(forged):
    law = forged.settings[0]["law"]
    if "source" not in law:
        raise NotApplicable
    forged.pick(slides(forged) & (forged.rows["settings_version"] == 0))
    law["source"] = law["source"].replace("return ", "return 0.001 + ")
    forged.metadata["configuration"]["law"] = law
    return Expected("law")


@wrong("element edited in journal and configuration")
def _other_element(forged):
    moving = forged.good & (forged.norm("friction_force") > 0.1) & (forged.rows["settings_version"] == 0)
    moving[1:] &= np.abs(np.diff(forged.rows["sliding_velocity"][:, 0])) > 1e-4
    forged.pick(moving)
    element = forged.settings[0]["element"]
    element[str(forged.choose.choice(list(element)))] *= 1.05
    forged.metadata["configuration"]["element"] = element
    return Expected("equations")


@wrong("law edited in the journal alone")
def _other_journal(forged):
    law = forged.settings[0]["law"]
    law[next(name for name, value in law.items() if isinstance(value, float) and value)] *= 1.01
    return Expected("configuration")


# Envelope: commands, flags, samples, energy, limits


@wrong("command * 1.01")
def _scaled_command(forged):
    k = forged.pick(forged.good & (forged.norm("command") > (1e-2 if forged.impedance else 1e-4)))
    forged.rows["command"][k] *= 1.01
    if not forged.impedance:
        forged.rows["proxy"][k] = forged.rows["command"][k]
    return Expected("command", int(forged.rows["tick"][k]))


@wrong("flag cleared")
def _cleared_flag(forged):
    flags = forged.rows["status"] & (ENVELOPE_FLAGS & ~UNUSABLE)
    k = forged.pick(forged.good & (flags != 0))
    bits = [1 << i for i in range(16) if flags[k] & (1 << i)]
    forged.rows["status"][k] &= ~np.uint32(forged.choose.choice(bits))
    return Expected("flag", int(forged.rows["tick"][k]))


@wrong("flag set")
def _set_flag(forged):
    bit = np.uint32(forged.choose.choice([1 << i for i in (2, 3, 4, 6, 7, 12)]))
    k = forged.pick(forged.steady & ((forged.rows["status"] & bit) == 0) & (forged.norm("friction_force") > 0.1))
    forged.rows["status"][k] |= bit
    return Expected("flag", int(forged.rows["tick"][k]))


at_tick(
    "flag of an unusable sample cleared",
    "sample",
    put("status", lambda f, k: f.rows["status"][k] & ~np.uint32(UNUSABLE)),
    lambda f: (f.rows["status"] & UNUSABLE) != 0,
)
at_tick(
    "usable sample flagged as unusable",
    "sample",
    put("status", lambda f, k: f.rows["status"][k] | np.uint32(f.choose.choice([1 << 1, 1 << 11, 1 << 14]))),
)
at_tick("sample too old", "sample", put("sample_age", lambda f, k: 1.01 * f.metadata["limits"]["max_sample_age"]))
at_tick(
    "energy removed from the ledger",
    "energy",
    scale("injected_energy", 0.9),
    lambda f: f.good & (f.rows["injected_energy"] > 1e-9),
)


def add_energy(forged, k):
    forged.rows["injected_energy"][k:] += 1e-9


at_tick("energy added to the ledger from a tick on", "energy", add_energy)


@wrong("position shifted together with the proxy")
def _shifted_position(forged):
    acts = forged.norm("command") > 0.3 if forged.impedance else forged.norm("force") > 0.3
    k = forged.pick(forged.good & acts & (forged.rows["injected_energy"] > 1e-7))
    forged.rows["position"][k] += 1.3e-5
    if forged.impedance:
        forged.rows["proxy"][k] = forged.rows["position"][k] - forged.rows["displacement"][k]
    return Expected("energy", int(forged.rows["tick"][k]))


at_tick("gate edited", "gate", put("gate", lambda f, k: 0.5 if f.rows["gate"][k] == 1.0 else f.rows["gate"][k] + 1e-3))


@wrong("release invented")
def _released(forged):
    dead_man = forged.metadata["limits"]["dead_man"]
    if dead_man == "key":
        raise NotApplicable
    forged.rows["permission"][forged.pick(forged.good & ((forged.rows["permission"] & 1) == 0))] |= 1
    return Expected("permission" if dead_man == "none" else "buttons")


@wrong("end without fading")
def _no_end(forged):
    if forged.metadata["reason"] != "completed":
        raise NotApplicable
    forged.rows["permission"] &= ~np.uint32(2)
    return Expected("permission")


@wrong("limit widened")
def _widened(forged):
    name = str(forged.choose.choice(["max_force", "max_speed", "max_energy", "max_sample_age", "plausible_speed"]))
    forged.metadata["limits"][name] *= 2.0
    return Expected("limits")


@wrong("active limit widened everywhere")
def _widened_everywhere(forged):
    for bit, name in ((1 << 2, "max_force" if forged.impedance else "max_speed"), (1 << 7, "max_energy")):
        if (forged.good & ((forged.rows["status"] & bit) != 0)).any():
            forged.metadata["limits"][name] = forged.metadata["device"][name] = 1e3
            forged.metadata["configuration"]["envelope"].pop(name, None)
            return Expected("flag")
    raise NotApplicable


@wrong("limit tightened everywhere")
def _tightened_everywhere(forged):
    if not forged.impedance:
        raise NotApplicable
    top = float(np.nanmax(forged.norm("command")))
    for table in (forged.metadata["limits"], forged.metadata["configuration"]["envelope"]):
        table["max_force"] = 0.9 * top
    return Expected("limit")


edited(
    "delay of the device edited",
    "energy",
    lambda f: f.metadata["device"].update(delay=0.002),
    lambda f: f.impedance and (f.good & (f.rows["injected_energy"] > 1e-9)).any(),
)

# Clock, and the description of the rows

at_tick("time edited", "time", put("time", lambda f, k: np.nextafter(f.rows["time"][k], 1.0)))


@wrong("two ticks swapped")
def _swapped(forged):
    k = forged.pick(np.arange(len(forged.rows)) < len(forged.rows) - 1)
    forged.rows[[k, k + 1]] = forged.rows[[k + 1, k]]
    return Expected("tick", int(forged.rows["tick"][k + 1]))


@wrong("tick removed")
def _taken_out(forged):
    k = forged.pick((np.arange(len(forged.rows)) > 10) & (np.arange(len(forged.rows)) < len(forged.rows) - 10))
    forged.rows = np.delete(forged.rows, k)
    return Expected("tick", int(forged.rows["tick"][k]), missing=True)


@wrong("tick removed and marked as skipped")
def _called_a_skip(forged):
    k = forged.pick((np.arange(len(forged.rows)) > 320) & forged.steady & (forged.norm("sliding_velocity") > 1e-2))
    if k + 1 >= len(forged.rows) or not forged.good[k + 1]:
        raise NotApplicable
    forged.rows = np.delete(forged.rows, k)
    forged.rows["status"][k] |= 1 << 10
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("end removed")
def _cut(forged):
    forged.rows = forged.rows[: -int(forged.choose.integers(1, 200))]
    kept = json.loads(json.dumps(forged.metadata["certificate"]))
    forged.save()
    forged.metadata["certificate"], forged.resealed = kept, False
    return Expected("rows", missing=True)


@wrong("end removed and certified")
def _cut_and_certified(forged):
    if forged.metadata["reason"] != "completed":
        raise NotApplicable
    forged.rows = forged.rows[: -int(forged.choose.integers(60, 200))]
    return Expected("end", missing=True)


at_tick(
    "lateness edited",
    "timing",
    put("period_error", lambda f, k: 0.7 / f.metadata["rate_hz"]),
    lambda f: (f.rows["status"] & (1 << 8)) == 0,
)
at_tick(
    "duration edited",
    "timing",
    put("tick_time", lambda f, k: 1.2 / f.metadata["rate_hz"]),
    lambda f: (f.rows["status"] & (1 << 9)) == 0,
)


@wrong("rate edited")
def _other_rate(forged):
    forged.metadata["rate_hz"] *= 1.001
    forged.metadata["configuration"]["session"]["rate"] = forged.metadata["rate_hz"]
    return Expected("time")


@wrong("certificate edited")
def _forged_certificate(forged):
    forged.resealed = False
    stored = forged.metadata["certificate"]
    edits = [
        (stored, "overruns", 1),
        (stored, "skipped", 1),
        (stored, "fit", 1 - 2 * stored["fit"]),
        (stored["period_error_us"], "p99", 1.0),
        (stored["histograms"]["tick_us"], 3, 1),
        (forged.metadata["force_n"], "max", 0.01),
    ]
    table, key, difference = edits[forged.choose.integers(len(edits))]
    table[key] += difference
    return Expected("certificate")


@wrong("rows edited under the old hash")
def _old_hash(forged):
    forged.resealed = False
    forged.rows["hand_force"][forged.pick(np.ones(len(forged.rows), bool))] = 1.25
    return Expected("hash")


OTHER_MODEL = {"A": "D", "D": "A", "B": "C", "C": "B"}
edited("model edited", "configuration", lambda f: f.metadata.update(model=OTHER_MODEL[f.metadata["model"]]))
edited("settings removed", "settings", lambda f: f.settings.pop(1), lambda f: len(f.settings) > 2)
edited("unit edited", "columns", lambda f: f.metadata["columns"].update(friction_force="mN"))
edited(
    "device edited", "configuration", lambda f: f.metadata["device"].update(name="pantograph" if f.impedance else "arm")
)
