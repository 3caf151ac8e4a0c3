"""Consistency checks of the metadata: end, hash, columns, settings, configuration and limits."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from apps.verify.facts import ADMITTANCE, IMPEDANCE, MOTION
from apps.verify.findings import Findings
from apps.verify.recorded import Recorded, Window
from haptics.errors import RecordingError

_AT_ONCE = 1 << 20

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
_SINCE_3 = ("marker", "gate", "region", "normal_force", "hand_force")


def check_end(run: Recorded, findings: Findings) -> None:
    """Check that the recording was closed and contains all its rows."""
    metadata, count = run.metadata, len(run.source)
    state, reason = metadata.get("state"), metadata.get("reason")
    if state != "complete":
        words = f"the recording was not closed properly (state {str(state)[:40]!r}, reason {str(reason)[:60]!r})."
        findings.lack("state", words)
    certificate = metadata.get("certificate")
    told = certificate if isinstance(certificate, dict) else {}
    lost, executed = told.get("lost_ticks", 0), told.get("ticks", _ticks_of_the_end(run))
    if lost:
        findings.lack("rows", f"{lost} ticks of the run were lost before they could be written.")
    elif isinstance(executed, int) and count < executed:
        findings.lack("rows", f"the recording holds {count} of the {executed} ticks of its run.")
    elif isinstance(executed, int) and count > executed:
        findings.violate("rows", f"the recording holds {count} ticks, but its run had {executed}")


def _ticks_of_the_end(run: Recorded) -> Any:
    """Return the number of executed ticks that the servo reported at the end of the run."""
    try:
        said = [event.get("ticks") for event in run.source.events if "ticks" in event]
    except RecordingError:
        return None
    return said[-1] if said else None


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
    if run.source.ticks.suffix == ".npz":
        _check_hash_of_packed(run, of_rows is not None, stored, findings)
        return
    try:
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


def _check_hash_of_packed(run: Recorded, of_rows: bool, stored: Any, findings: Findings) -> None:
    """Compare the stored hash with the hash of the unpacked rows."""
    header = run.source.table.header()
    found = hashlib.sha256(b"" if of_rows else header)
    for rows in run.source.chunks():
        found.update(rows.tobytes())
    found.update(header if of_rows else b"")
    if found.hexdigest() != stored:
        findings.violate("hash", _CHANGED)


def check_columns(run: Recorded, findings: Findings) -> None:
    """Compare columns and units with the metadata and the channels of the device."""
    names, told = run.source.table.dtype.names or (), run.metadata.get("columns", {})
    expected = dict(_UNITS)
    if int(run.metadata["format"]) < 3:
        expected = {name: unit for name, unit in expected.items() if name not in _SINCE_3 or name in names}
    missing = [name for name in expected if name not in names]
    if missing:
        findings.lack("columns", f"the table of ticks lacks {', '.join(missing)}.")
    for name, unit, size in _channels(run):
        column = f"channel_{name}"
        expected[column] = unit
        shape = run.source.table.dtype[column].shape if column in names else None
        if shape is None or math.prod(shape) != size:
            findings.violate("columns", f"the table of ticks lacks the column {column}, which its device measures")
    if sorted(names) != sorted(told) or any(expected.get(name, unit) != unit for name, unit in told.items()):
        words = "the described columns differ from those of the table of ticks, or have other units"
        findings.violate("columns", words)


def _channels(run: Recorded) -> Iterator[tuple[str, str, int]]:
    channels = run.metadata["device"].get("channels", [])
    for channel in channels if isinstance(channels, list) else []:
        match channel:
            case [str(name), str(unit), int(size)]:
                yield name, unit, size


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
    asked = _table(configuration, "envelope") if isinstance(configuration, dict) else {}
    for name, value in limits.items():
        expected = asked.get(name, device.get(name, {"passivity_control": False, "dead_man": "none"}.get(name, value)))
        if isinstance(configuration, dict) and expected != value:
            words = f"{name} = {str(value)[:40]} does not follow from device and configuration, which give {expected}"
            findings.violate("limits", words)
        if _is_wider(name, value, device.get(name)):
            findings.violate("limits", f"{name} = {str(value)[:40]} is wider than the device's {device.get(name)}")
    for name in asked:
        if name not in limits:
            findings.violate("limits", f"{name} is configured, but is no limit of the run")


def _is_wider(name: str, value: Any, own: Any) -> bool:
    """Return True if a limit is less strict than the device's limit."""
    if own is None:
        return False
    if name in _TIGHTER_IF_LESS:
        return bool(value > own)
    if name == "fade_in":
        return bool(value < own)
    return name == "dead_man" and own not in ("none", value)
