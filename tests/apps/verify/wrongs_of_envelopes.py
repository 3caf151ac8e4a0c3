"""Wrongs done to the envelope: commands, flags, samples, energy, limits."""

from __future__ import annotations

import numpy as np

from haptics.rendering.envelope import ENVELOPE_FLAGS, UNUSABLE
from tests.apps.verify.forging import Expected, Forgery, NotHere, wrong


@wrong("a command scaled by 1.01")
def _scaled_command(forged: Forgery) -> Expected:
    far = forged.norm("command") > (1e-2 if forged.impedance else 1e-4)
    k = forged.pick(forged.good & far)
    forged.rows["command"][k] *= 1.01
    if not forged.impedance:
        forged.rows["proxy"][k] = forged.rows["command"][k]
    return Expected("command", int(forged.rows["tick"][k]))


@wrong("all commands scaled by 1.01")
def _scaled_commands(forged: Forgery) -> Expected:
    forged.pick(forged.good & (forged.norm("command") > 1e-2))
    forged.rows["command"] *= 1.01
    if not forged.impedance:
        forged.rows["proxy"] = forged.rows["command"]
    return Expected("command")


@wrong("a flag cleared")
def _cleared_flag(forged: Forgery) -> Expected:
    flags = forged.rows["status"] & (ENVELOPE_FLAGS & ~UNUSABLE)
    k = forged.pick(forged.good & (flags != 0))
    bits = [1 << i for i in range(16) if flags[k] & (1 << i)]
    forged.rows["status"][k] &= ~np.uint32(forged.choose.choice(bits))
    return Expected("flag", int(forged.rows["tick"][k]))


@wrong("a flag set")
def _set_flag(forged: Forgery) -> Expected:
    bit = np.uint32(forged.choose.choice([1 << i for i in (2, 3, 4, 6, 7, 12)]))
    k = forged.pick(forged.steady & ((forged.rows["status"] & bit) == 0) & (forged.norm("friction_force") > 0.1))
    forged.rows["status"][k] |= bit
    return Expected("flag", int(forged.rows["tick"][k]))


@wrong("a flag of an unusable sample cleared")
def _trusted(forged: Forgery) -> Expected:
    k = forged.pick((forged.rows["status"] & UNUSABLE) != 0)
    forged.rows["status"][k] &= ~np.uint32(UNUSABLE)
    return Expected("sample", int(forged.rows["tick"][k]))


@wrong("a sample said to be unusable")
def _distrusted(forged: Forgery) -> Expected:
    k = forged.pick(forged.good)
    forged.rows["status"][k] |= np.uint32(forged.choose.choice([1 << 1, 1 << 11, 1 << 14]))
    return Expected("sample", int(forged.rows["tick"][k]))


@wrong("a sample made too old")
def _aged(forged: Forgery) -> Expected:
    k = forged.pick(forged.good)
    forged.rows["sample_age"][k] = 1.01 * forged.metadata["limits"]["max_sample_age"]
    return Expected("sample", int(forged.rows["tick"][k]))


@wrong("energy taken out of the ledger")
def _less_energy(forged: Forgery) -> Expected:
    k = forged.pick(forged.good & (forged.rows["injected_energy"] > 1e-9))
    forged.rows["injected_energy"][k] *= 0.9
    return Expected("energy", int(forged.rows["tick"][k]))


@wrong("energy added to the ledger from a tick on")
def _more_energy(forged: Forgery) -> Expected:
    k = forged.pick(forged.good)
    forged.rows["injected_energy"][k:] += 1e-9
    return Expected("energy", int(forged.rows["tick"][k]))


@wrong("a position shifted, and the proxy with it")
def _shifted_position(forged: Forgery) -> Expected:
    acts = forged.norm("command") > 0.3 if forged.impedance else forged.norm("force") > 0.3
    k = forged.pick(forged.good & acts & (forged.rows["injected_energy"] > 1e-7))
    forged.rows["position"][k] += 1.3e-5
    if forged.impedance:
        forged.rows["proxy"][k] = forged.rows["position"][k] - forged.rows["displacement"][k]
    return Expected("energy", int(forged.rows["tick"][k]))


@wrong("a gate edited")
def _other_gate(forged: Forgery) -> Expected:
    k = forged.pick(forged.good)
    forged.rows["gate"][k] = 0.5 if forged.rows["gate"][k] == 1.0 else forged.rows["gate"][k] + 1e-3
    return Expected("gate", int(forged.rows["tick"][k]))


@wrong("a release made up")
def _released(forged: Forgery) -> Expected:
    if forged.metadata["limits"]["dead_man"] == "key":
        raise NotHere
    k = forged.pick(forged.good & ((forged.rows["permission"] & 1) == 0))
    forged.rows["permission"][k] |= 1
    return Expected("permission" if forged.metadata["limits"]["dead_man"] == "none" else "buttons")


@wrong("an end that did not fade")
def _no_end(forged: Forgery) -> Expected:
    if forged.metadata["reason"] != "completed":
        raise NotHere
    forged.rows["permission"] &= ~np.uint32(2)
    return Expected("permission")


@wrong("a limit widened")
def _widened(forged: Forgery) -> Expected:
    name = str(forged.choose.choice(["max_force", "max_speed", "max_energy", "max_sample_age", "plausible_speed"]))
    forged.metadata["limits"][name] *= 2.0
    return Expected("limits")


@wrong("a limit that acted widened everywhere")
def _widened_everywhere(forged: Forgery) -> Expected:
    for bit, name in ((1 << 2, "max_force" if forged.impedance else "max_speed"), (1 << 7, "max_energy")):
        if (forged.good & ((forged.rows["status"] & bit) != 0)).any():
            forged.metadata["limits"][name] = forged.metadata["device"][name] = 1e3
            forged.metadata["configuration"]["envelope"].pop(name, None)
            return Expected("flag")
    raise NotHere


@wrong("a limit tightened everywhere")
def _tightened_everywhere(forged: Forgery) -> Expected:
    if not forged.impedance:
        raise NotHere
    top = float(np.nanmax(forged.norm("command")))
    for table in (forged.metadata["limits"], forged.metadata["configuration"]["envelope"]):
        table["max_force"] = 0.9 * top
    return Expected("limit")


@wrong("another delay of the device")
def _other_delay(forged: Forgery) -> Expected:
    if not forged.impedance or not (forged.good & (forged.rows["injected_energy"] > 1e-9)).any():
        raise NotHere
    forged.metadata["device"]["delay"] = 0.002
    return Expected("energy")
