"""Checks of the metadata (end, hash, columns, settings, configuration, limits), and of ticks, times and the gate."""

from __future__ import annotations

import hashlib
import math
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from apps.verify.findings import Findings
from apps.verify.recorded import (
    ADDED,
    ADMITTANCE,
    FADE_OUT,
    FLAGS,
    IMPEDANCE,
    MOTION,
    Flag,
    Permission,
    Recorded,
    Window,
)
from haptics.errors import RecordingError

_AT_ONCE = 1 << 20

DEAD_MAN_BUTTON = 1

GATE_TIME = 0.05
"""Duration of the gate's half cosine [s]."""

LATE_SHARE = 0.5
"""Share of a period after which the start of a tick counts as late."""

_CHANGED = "the file of rows has changed since the recording was closed: its SHA-256 is another"

CAUSALITY = {"A": ADMITTANCE, "B": IMPEDANCE, "C": IMPEDANCE, "D": ADMITTANCE}

_TIGHTER_IF_LESS = (
    "max_force",
    "max_force_rate",
    "max_speed",
    "max_acceleration",
    "max_sample_age",
    "max_energy",
    "plausible_speed",
    "max_following_error",
)

_UNITS = {
    "tick": "1",
    **dict.fromkeys(("time", "sample_age", "period_error", "tick_time", "write_time"), "s"),
    **dict.fromkeys(("position", "proxy", "displacement"), "m"),
    **dict.fromkeys(("velocity", "sliding_velocity"), "m/s"),
    **dict.fromkeys(("force", "friction_force", "normal_force", "hand_force"), "N"),
    **dict.fromkeys(("command", "command_unlimited"), "N (impedance) or m (admittance)"),
    "injected_energy": "J",
    **dict.fromkeys(("settings_version", "marker", "gate", "region"), "1"),
    **dict.fromkeys(("status", "permission", "buttons"), "bit flags"),
    "sticking": "0 or 1",
}


def check_end(run: Recorded, findings: Findings) -> None:
    """Check that the recording was closed and contains all its rows."""
    metadata, count = run.metadata, len(run.source)
    state, reason = metadata.get("state"), metadata.get("reason")
    if state != "complete":
        words = f"the recording was not closed properly (state {str(state)[:40]!r}, reason {str(reason)[:60]!r})."
        findings.lack("state", words)
    certificate = metadata.get("certificate")
    stated = certificate if isinstance(certificate, dict) else {}
    try:  # the number that the servo reported at the end of the run
        reported = [None, *(event.get("ticks") for event in run.source.events if "ticks" in event)][-1]
    except RecordingError:
        reported = None
    lost, executed = stated.get("lost_ticks", 0), stated.get("ticks", reported)
    if lost:
        findings.lack("rows", f"{lost} ticks of the run were lost before they could be written.")
    elif isinstance(executed, int) and count < executed:
        findings.lack("rows", f"the recording holds {count} of the {executed} ticks of its run.")
    elif isinstance(executed, int) and count > executed:
        findings.violate("rows", f"the recording holds {count} ticks, but its run had {executed}")


def check_hash(run: Recorded, findings: Findings) -> None:
    """Compare the SHA-256 of the rows with the stored value.

    The stored hash covers the rows followed by the header of their file. In older recordings it covers the whole file.
    """
    of_rows = run.metadata.get("rows_sha256")
    stored = run.metadata.get("ticks_sha256") if of_rows is None else of_rows
    if stored is None:
        if run.metadata.get("state") != "complete" or int(run.metadata["format"]) > 1:
            findings.lack("hash", "the recording has no hash of its rows: nobody closed it, or an older version did.")
        return
    found = hashlib.sha256()
    try:
        if run.source.ticks.suffix == ".npz":  # packed: the hash covers the unpacked rows
            header = run.source.table.header()
            found.update(b"" if of_rows is not None else header)
            for rows in run.source.chunks():
                found.update(rows.tobytes())
            found.update(header if of_rows is not None else b"")
        else:
            with open(run.source.ticks, "rb") as file:
                preamble = file.read(10) if of_rows is not None else b""
                header = preamble + file.read(int.from_bytes(preamble[8:], "little"))
                while piece := file.read(_AT_ONCE):
                    found.update(piece)
                found.update(header)
    except OSError as error:
        findings.lack("hash", f"{run.source.ticks.name} cannot be read again ({error}).")
        return
    if found.hexdigest() != stored:
        findings.violate("hash", _CHANGED)


def check_columns(run: Recorded, findings: Findings) -> None:
    """Compare columns and units with the metadata and the channels of the device."""
    names, stated = run.source.table.dtype.names or (), run.metadata.get("columns", {})
    later = {name for name, (first, _) in ADDED.items() if first > int(run.metadata["format"])}
    expected = {name: unit for name, unit in _UNITS.items() if name not in later or name in names}
    missing = [name for name in expected if name not in names]
    if missing:
        findings.lack("columns", f"the table of ticks lacks {', '.join(missing)}.")
    channels = run.metadata["device"].get("channels", [])
    for channel in channels if isinstance(channels, list) else []:
        match channel:
            case [str(name), str(unit), int(size)]:
                column = f"channel_{name}"
            case _:
                continue
        expected[column] = unit
        shape = run.source.table.dtype[column].shape if column in names else None
        if shape is None or math.prod(shape) != size:
            findings.violate("columns", f"the table of ticks lacks the column {column}, which its device measures")
    if sorted(names) != sorted(stated) or any(expected.get(name, unit) != unit for name, unit in stated.items()):
        words = "the described columns differ from those of the table of ticks, or have other units"
        findings.violate("columns", words)


def check_settings(run: Recorded, findings: Findings) -> None:
    """Check the versions of the settings in the journal."""
    versions = [entry.get("version") for entry in run.source.settings]
    if versions != list(range(len(versions))):
        findings.violate("settings", f"the journal has the versions {str(versions)[:60]}, which must count from 0")
    numbers = [entry.get("program", 0) for entry in run.source.settings]
    models = [entry.get("model") for entry in run.source.settings]
    for k in range(1, len(numbers)):
        if numbers[k] == numbers[k - 1] and models[k] != models[k - 1]:
            findings.violate("settings", f"version {k} of the settings has another model, but is no new program")
    causality = str(run.metadata["device"]["causality"])
    for model in dict.fromkeys(str(model) for model in models):
        if CAUSALITY.get(model, causality) != causality:
            findings.violate("settings", f"model {model} is no {causality}, as the device is")


def check_versions(run: Window, findings: Findings) -> None:
    """Check the versions of the settings in the rows."""
    used = run.column("settings_version")
    versions = [entry.get("version") for entry in run.source.settings]
    findings.where("settings", run.tick, np.diff(used, prepend=0) < 0, "older settings come into force again")
    unknown = ~np.isin(used, [version for version in versions if isinstance(version, int)])
    findings.where("settings", run.tick, unknown, lambda k: f"version {used[k]} of the settings is not in the journal")


def check_configuration(run: Recorded, findings: Findings) -> None:
    """Compare the configuration with the first settings, the device and the rate."""
    metadata = run.metadata
    configuration = metadata.get("configuration")
    if not isinstance(configuration, dict):
        findings.lack("configuration", "the recording does not say how it was configured.")
        return
    session, device = (_table(configuration, name) for name in ("session", "device"))
    first = run.source.settings[0] if run.source.settings else {}
    moves = first.get("model") == MOTION
    pairs = {
        "law": (configuration.get("law"), first.get("law")),
        "element": (configuration.get("element"), first.get("element")),
        "model": (session.get("model"), first.get("model")),
    }
    compared = {} if moves and "law" not in configuration else pairs
    compared |= {
        "the recording's model": (metadata.get("model"), first.get("model")),
        "rate": (session.get("rate", metadata.get("rate_hz")), metadata.get("rate_hz")),
    }
    if not moves or device:
        compared["device"] = (device.get("name"), metadata["device"].get("name"))
    differing = [name for name, (one, other) in compared.items() if one != other]
    if differing:
        findings.violate(
            "configuration", f"the configuration differs from settings and device in {', '.join(differing)}"
        )
    if "measured_file_hash" in metadata and not session.get("measured"):  # older recordings do not contain it
        words = "the recording has the hash of a file of measurements, but its session names none"
        findings.violate("configuration", words)
    rate, low, high = (float(metadata["rate_hz"]), *(metadata["device"].get(name) for name in ("rate_min", "rate_max")))
    if low is not None and high is not None and not low * (1 - 1e-9) <= rate <= high * (1 + 1e-9):
        findings.violate("configuration", f"the device cannot be served at {rate:g} Hz, only at {low:g} to {high:g} Hz")


def _table(configuration: dict[str, Any], name: str) -> dict[str, Any]:
    table = configuration.get(name, {})
    return table if isinstance(table, dict) else {}


def check_limits(run: Recorded, findings: Findings) -> None:
    """Compare the limits with the device's limits, tightened by the configuration."""
    limits, device = run.metadata["limits"], run.metadata["device"]
    configuration = run.metadata.get("configuration")
    configured = _table(configuration, "envelope") if isinstance(configuration, dict) else {}
    for name, value in limits.items():
        expected = configured.get(
            name, device.get(name, {"passivity_control": False, "dead_man": "none"}.get(name, value))
        )
        if isinstance(configuration, dict) and expected != value:
            words = f"{name} = {str(value)[:40]} does not follow from device and configuration, which give {expected}"
            findings.violate("limits", words)
        own = device.get(name)
        if own is None:
            continue
        if name in _TIGHTER_IF_LESS:
            wider = value > own
        else:
            wider = value < own if name == "fade_in" else name == "dead_man" and own not in ("none", value)
        if wider:
            findings.violate("limits", f"{name} = {str(value)[:40]} is wider than the device's {own}")
    for name in configured:
        if name not in limits:
            findings.violate("limits", f"{name} is configured, but is no limit of the run")


_ROUNDING = 1e-9
ORIGIN_SINCE = 3
"""First recording format that contains the time of tick 0."""


def check_ticks(run: Recorded, findings: Findings) -> None:
    """Check that the ticks are complete and increasing."""
    order = run.order
    if order.back is not None:
        before, after = order.back
        findings.violate("tick", f"tick {after} comes after tick {before}", after)
    elif order.gap < len(run.source):
        words = f"ticks are missing before tick {order.gap_tick}, and no deadline was missed."
        findings.lack("tick", words, order.gap_tick)
    if not len(run.source):
        findings.lack("rows", "the recording holds no tick: there is nothing to check.")


def check_times(run: Window, findings: Findings) -> None:
    """Check times, lateness, durations and the corresponding flags."""
    T, tick, status = run.period, run.tick, run.status
    late, taken, written = (run.column(name) for name in ("period_error", "tick_time", "write_time"))
    where = findings.where
    where("time", tick, run.column("time") != tick * T, "the time is not the number of the tick times the period")
    with np.errstate(invalid="ignore"):
        within = (late >= -_ROUNDING) & (late < T + _ROUNDING)
        where("timing", tick, ~within, "a lateness must be at least 0 and less than a period")
        orderly = (written >= -_ROUNDING) & (written <= taken + _ROUNDING) & np.isfinite(taken)
        where("timing", tick, ~orderly, "a command was handed over before its tick began, or after it ended")
        for flag, expected, word in (
            (Flag.STARTED_LATE, late > LATE_SHARE * T, "started"),
            (Flag.ENDED_LATE, late + taken > T, "ended"),
        ):
            broken = ((status & flag) != 0) != expected
            where("timing", tick, broken, f"the flag that a tick {word} late and its times disagree")
    jumped = np.diff(tick, prepend=-1) != 1
    flagged = ((status & Flag.AFTER_SKIP) != 0) & ~jumped
    where("timing", tick, flagged, "deadlines are said to have been skipped, but no tick is missing")
    unknown = (status & ~sum(FLAGS.values())) != 0
    where("flag", tick, unknown, "a flag is set that there is not")
    age = run.column("sample_age")
    where("timing", tick, ~(age >= 0.0) & ~np.isnan(age), "a sample is younger than its tick")


def check_permissions(run: Window, findings: Findings) -> None:
    """Check the dead-man's switch against the buttons, and that an ending run did not continue."""
    tick, permission = run.tick, run.column("permission").astype(np.int64)
    released, ending = (permission & Permission.RELEASED) != 0, (permission & Permission.ENDING) != 0
    where, dead_man = findings.where, str(run.limit("dead_man", "none"))
    where("permission", tick, (permission & ~(Permission.RELEASED | Permission.ENDING)) != 0, "an undefined bit is set")
    where("permission", tick, np.diff(ending, prepend=False) & ~ending, "a run that was ending went on")
    if dead_man == "none":
        where("permission", tick, released, "a dead-man's switch was released, but the run has none")
    elif dead_man == "button":
        held = (run.column("buttons").astype(np.int64) & DEAD_MAN_BUTTON) != 0
        where("permission", tick, released == held, "the dead-man's button and its release disagree")


def check_ending(run: Window, findings: Findings) -> None:
    """Check that a run of planned length fades out at its planned end, and that its last ticks exist."""
    session = run.metadata.get("configuration", {}).get("session", {})
    duration = session.get("duration")
    if run.metadata.get("reason") != "completed" or not isinstance(duration, int | float):
        return
    planned = round(duration / run.period)
    fading = _ticks_in(run, FADE_OUT)
    if not run.impedance:
        fading = max(fading, _ticks_in(run, float(run.limit("max_speed")) / float(run.limit("max_acceleration"))))
    begins = planned - min(fading, planned // 2)
    ending = (run.column("permission").astype(np.int64) & Permission.ENDING) != 0
    wrong = ending != (run.tick >= begins)
    findings.where("permission", run.tick, wrong, f"the planned end begins at tick {begins}, the rows say otherwise")
    findings.where("tick", run.tick, run.tick >= planned, f"the run was planned to have {planned} ticks")
    # Up to that many ticks may be missing because the last deadlines were missed.
    if run.is_last and planned - 1 - int(run.tick[-1]) > _ticks_in(run, FADE_OUT):
        words = f"the last ticks of the {planned} that were planned are missing, or their deadlines were missed."
        findings.lack("end", words, int(run.tick[-1]))


def _ticks_in(run: Recorded, duration: float) -> int:
    """Return the number of ticks in a duration [s], plus one for rounding."""
    return math.ceil(duration / run.period * (1.0 - 1e-9)) + 1


def check_origin(run: Recorded, findings: Findings) -> None:
    """Check the time of tick 0."""
    monotonic, utc = (run.metadata.get(name) for name in ("origin_monotonic_ns", "origin_utc"))
    if int(run.metadata["format"]) < ORIGIN_SINCE or not len(run.source):
        return
    if monotonic is None or utc is None:
        findings.lack("origin", "the recording lacks the time of tick 0.")
        return
    try:
        right = type(monotonic) is int and monotonic > 0 and datetime.fromisoformat(utc).utcoffset() == timedelta(0)
    except (TypeError, ValueError):
        right = False
    if not right:
        findings.violate("origin", f"the time of tick 0 cannot be {str(monotonic)[:40]} ns, {str(utc)[:40]}")


_NEAR = 1e-12


class Gate:
    """Tracks the gate over consecutive windows."""

    def __init__(self) -> None:
        self._opening = 1.0

    def check(self, run: Window, findings: Findings) -> None:
        """Check that the gate moves by one step per tick, or stays at an end."""
        gate = run.column("gate")
        outside = ~((gate >= 0.0) & (gate <= 1.0))
        findings.where("gate", run.tick, outside, "the gate is outside 0 to 1")
        jumps = np.zeros(run.count, bool)
        step = run.period / GATE_TIME
        moves = np.flatnonzero((gate != 1.0) | np.concatenate(([False], gate[:-1] != 1.0)))
        for k in moves[moves >= run.skip].tolist():
            choices = (max(self._opening - step, 0.0), min(self._opening + step, 1.0))
            off = [abs(gate[k] - (0.5 - 0.5 * math.cos(math.pi * choice))) for choice in choices]
            if min(off) <= _NEAR:
                self._opening = choices[0] if off[0] <= off[1] else choices[1]
                continue
            jumps[k] = True
            whole = min(max(1.0 - 2.0 * float(gate[k]), -1.0), 1.0)
            self._opening = math.acos(whole) / math.pi if not outside[k] else 1.0
        words = "the gate jumps to {:.6g}: it takes 50 ms to move"
        findings.where("gate", run.tick, jumps, lambda k: words.format(gate[k]))
