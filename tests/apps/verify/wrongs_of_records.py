"""Wrongs done to the clock and to what a recording says about its rows."""

from __future__ import annotations

import json

import numpy as np

from tests.apps.verify.forging import Expected, Forgery, NotHere, wrong


@wrong("a time edited")
def _other_time(forged: Forgery) -> Expected:
    k = forged.pick(forged.good)
    forged.rows["time"][k] = np.nextafter(forged.rows["time"][k], 1.0)
    return Expected("time", int(forged.rows["tick"][k]))


@wrong("two ticks swapped")
def _swapped(forged: Forgery) -> Expected:
    k = forged.pick(np.arange(len(forged.rows)) < len(forged.rows) - 1)
    forged.rows[[k, k + 1]] = forged.rows[[k + 1, k]]
    return Expected("tick", int(forged.rows["tick"][k + 1]))


@wrong("a tick taken out")
def _taken_out(forged: Forgery) -> Expected:
    k = forged.pick((np.arange(len(forged.rows)) > 10) & (np.arange(len(forged.rows)) < len(forged.rows) - 10))
    forged.rows = np.delete(forged.rows, k)
    return Expected("tick", int(forged.rows["tick"][k]), missing=True)


@wrong("a tick taken out, and called a skip")
def _called_a_skip(forged: Forgery) -> Expected:
    k = forged.pick((np.arange(len(forged.rows)) > 320) & forged.steady & (forged.norm("sliding_velocity") > 1e-2))
    if k + 1 >= len(forged.rows) or not forged.good[k + 1]:
        raise NotHere
    forged.rows = np.delete(forged.rows, k)
    forged.rows["status"][k] |= 1 << 10
    return Expected("equations", int(forged.rows["tick"][k]))


@wrong("the end cut off")
def _cut(forged: Forgery) -> Expected:
    forged.rows = forged.rows[: -int(forged.choose.integers(1, 200))]
    kept = json.loads(json.dumps(forged.metadata["certificate"]))
    forged.save()
    forged.metadata["certificate"], forged.resealed = kept, False
    return Expected("rows", missing=True)


@wrong("the end cut off, and the certificate made anew")
def _cut_and_certified(forged: Forgery) -> Expected:
    if forged.metadata["reason"] != "completed":
        raise NotHere
    forged.rows = forged.rows[: -int(forged.choose.integers(60, 200))]
    return Expected("end", missing=True)


@wrong("a lateness edited")
def _later(forged: Forgery) -> Expected:
    k = forged.pick((forged.rows["status"] & (1 << 8)) == 0)
    forged.rows["period_error"][k] = 0.7 / forged.metadata["rate_hz"]
    return Expected("timing", int(forged.rows["tick"][k]))


@wrong("a duration edited")
def _longer(forged: Forgery) -> Expected:
    k = forged.pick((forged.rows["status"] & (1 << 9)) == 0)
    forged.rows["tick_time"][k] = 1.2 / forged.metadata["rate_hz"]
    return Expected("timing", int(forged.rows["tick"][k]))


@wrong("another rate")
def _other_rate(forged: Forgery) -> Expected:
    forged.metadata["rate_hz"] *= 1.001
    forged.metadata["configuration"]["session"]["rate"] = forged.metadata["rate_hz"]
    return Expected("time")


@wrong("a certificate forged")
def _forged_certificate(forged: Forgery) -> Expected:
    forged.resealed = False
    told = forged.metadata["certificate"]
    change = int(forged.choose.integers(0, 6))
    if change == 0:
        told["overruns"] += 1
    elif change == 1:
        told["period_error_us"]["p99"] = 1.0
    elif change == 2:
        told["histograms"]["tick_us"][3] += 1
    elif change == 3:
        told["fit"] = not told["fit"]
    elif change == 4:
        told["skipped"] += 1
    else:
        forged.metadata["force_n"]["max"] += 0.01
    return Expected("certificate")


@wrong("rows changed under the old hash")
def _old_hash(forged: Forgery) -> Expected:
    forged.resealed = False
    k = forged.pick(np.ones(len(forged.rows), bool))
    forged.rows["hand_force"][k] = 1.25
    return Expected("hash")


@wrong("another model in the description")
def _other_model(forged: Forgery) -> Expected:
    forged.metadata["model"] = {"A": "D", "D": "A", "B": "C", "C": "B"}[forged.metadata["model"]]
    return Expected("configuration")


@wrong("a version of the settings taken out")
def _lost_version(forged: Forgery) -> Expected:
    if len(forged.settings) < 3:
        raise NotHere
    del forged.settings[1]
    return Expected("settings")


@wrong("another unit")
def _other_unit(forged: Forgery) -> Expected:
    forged.metadata["columns"]["friction_force"] = "mN"
    return Expected("columns")


@wrong("another device")
def _other_device(forged: Forgery) -> Expected:
    forged.metadata["device"]["name"] = "pantograph" if forged.impedance else "arm"
    return Expected("configuration")
