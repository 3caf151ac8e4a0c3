"""Checks of ``haptics replay --verify``: recompute the rows and compare them with the metadata.

The timing certificate is recomputed from the rows. Configuration, settings, limits and device are compared with each
other. The machine usage, the advice and the versions of a run cannot be derived from the rows and are not checked.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from apps.session.record import program_hash
from haptics.device import Causality
from haptics.errors import ConfigurationError, HapticError
from haptics.recording.certificate import SUMMARY_COLUMNS, Fitness, RunSummary
from haptics.recording.checks import INCOMPLETE, OK, VIOLATED, Finding
from haptics.recording.recording import stated_hash
from haptics.settings import build

if TYPE_CHECKING:
    from haptics.recording.recording import Recording
    from haptics.recording.replay import Verification

_PARAMETER_FILES = {"parameters": "parameter_file_hash", "friction_parameters": "friction_file_hash"}
_MEASURED = "measured_file_hash"


def examine(recording: Recording) -> Verification:
    """Return all findings about a recording.

    Raises
    ------
    RecordingError
        If metadata that a replay needs is missing.
    """
    from haptics.recording.replay import verify

    found = verify(recording)
    missing = any(one.rule in {"rows", "tick"} and one.verdict == INCOMPLETE for one in found.findings)
    more = [_certificate(recording, missing), _configuration(recording), _device(recording), _law(recording)]
    more.append(_measured(recording))
    return replace(found, findings=(*found.findings, *itertools.chain(*more)))


# --- certificate ------------------------------------------------------------------------------------------------------


def _certificate(recording: Recording, missing: bool) -> Iterator[Finding]:
    """Yield the differences between the stored certificate and the rows.

    Needs a complete set of rows.
    """
    metadata = recording.metadata
    recorded = metadata.get("certificate")
    if recorded is None:
        words = "the recording has no certificate: the application ended before it was made."
        yield Finding("certificate", INCOMPLETE, words)
        return
    if missing:
        yield Finding("certificate", INCOMPLETE, "the certificate cannot be recomputed: rows are missing.")
        return
    rate, configuration = metadata["rate_hz"], metadata.get("configuration", {})
    duration, summary = configuration.get("session", {}).get("duration"), RunSummary(1.0 / rate)
    planned = round(duration * rate) if duration is not None and metadata.get("reason") == "completed" else None
    for rows in recording.chunks(SUMMARY_COLUMNS):
        summary.add(rows)
    made = summary.certificate(len(recording), planned)
    if stated_hash(metadata):  # older versions used other criteria
        fitness = build(Fitness, configuration.get("fitness", {}), "fitness")
        made["fit"] = not fitness.evaluate(made, metadata.get("error"))
    made |= metadata.get("real_time", {}) | {"flags": summary.flags_seen()}
    made |= summary.force_statistics(Causality(metadata["device"]["causality"]))
    resolution = made.pop("resolution_us", {})
    present: dict[str, Any] = {name: metadata.get(name) for name in ("flags", "force_n", "stick_fraction")}
    differing, absent = [], []
    for name, value in made.items():
        stored = present if name in present else recorded
        if name not in stored or (stored[name] is None and value is not None):
            absent.append(name)
        elif not _alike(stored[name], value, 1.5e-3 + resolution.get(name, 0.0) if name.endswith("_us") else 1.5e-6):
            differing.append(name)
    if differing:
        words = f"the rows give another certificate: {', '.join(differing)}."
        yield Finding("certificate", VIOLATED, words)
    if absent and stated_hash(metadata):  # older versions did not store all values
        yield Finding("certificate", INCOMPLETE, f"the certificate lacks {', '.join(absent)}.")


def _alike(stored: Any, value: Any, tolerance: float) -> bool:
    """Return True if two plain values are equal up to the rounding of the last stored digit."""
    if isinstance(value, dict):
        return (
            isinstance(stored, dict)
            and stored.keys() == value.keys()
            and all(_alike(stored[name], one, tolerance) for name, one in value.items())
        )
    if isinstance(value, list | tuple):
        return (
            isinstance(stored, list)
            and len(stored) == len(value)
            and all(_alike(one, other, tolerance) for one, other in zip(stored, value, strict=True))
        )
    if isinstance(value, float) and isinstance(stored, int | float) and not isinstance(stored, bool):
        return math.isclose(stored, value, rel_tol=1e-9, abs_tol=tolerance)
    return type(stored) is type(value) and bool(stored == value)


# --- configuration and device -----------------------------------------------------------------------------------------


def _configuration(recording: Recording) -> Iterator[Finding]:
    """Yield contradictions between the configuration and the first settings, the limits, or the device."""
    from haptics.recording.replay import spec_of
    from haptics.rendering.envelope import Limits

    metadata = recording.metadata
    configuration = metadata.get("configuration")
    if configuration is None:
        yield Finding("configuration", INCOMPLETE, "the recording does not say how it was configured.")
        return
    session, device = configuration.get("session", {}), configuration.get("device", {})
    settings = recording.settings[0] if recording.settings else {}
    pairs = {
        "model": (session.get("model"), settings.get("model")),
        "law": (configuration.get("law"), settings.get("law")),
        "element": (configuration.get("element"), settings.get("element")),
        "the recording's model": (metadata.get("model"), settings.get("model")),
        "rate": (session.get("rate"), metadata.get("rate_hz")),
        "device": (device.get("name"), metadata["device"].get("name")),
    }
    differing = [name for name, (one, other) in pairs.items() if one != other]
    if differing:
        words = f"the configuration does not agree with the first settings and the device: {', '.join(differing)}."
        yield Finding("configuration", VIOLATED, words)
    try:
        expected = asdict(Limits.for_device(spec_of(metadata), configuration.get("envelope", {})))
    except (TypeError, ConfigurationError) as error:
        yield Finding("limits", VIOLATED, f"the envelope of the configuration does not fit the device: {error}")
        return
    differing = _differing(metadata["limits"], expected)
    if differing:
        words = f"the limits do not follow from the device and the configuration: {'; '.join(differing)}."
        yield Finding("limits", VIOLATED, words)


def _hand_with_the_same_grip(hand: dict[str, Any]) -> dict[str, Any]:
    """Return settings of a hand that needs no file.

    Only the grip of a hand is part of a device's data sheet.
    """
    from devices.virtual.hands.registry import DEFAULT_HAND, HANDS

    settings = HANDS.get(str(hand.get("name", DEFAULT_HAND)))
    if settings is None:
        return hand
    fields = {field.name: field.default for field in dataclasses.fields(settings)}
    grip = {name: hand.get(name, fields.get(name, 0.0)) for name in ("stiffness", "damping")}
    return {"name": DEFAULT_HAND, **grip}


def _device(recording: Recording) -> Iterator[Finding]:
    """Yield differences between the stored data sheet and the device that the configuration creates."""
    from devices import BACKENDS, create_device
    from haptics.clock import Clock

    metadata = recording.metadata
    table = dict(metadata.get("configuration", {}).get("device", {}))
    name = table.pop("name", None)
    if isinstance(table.get("hand"), dict):
        table["hand"] = _hand_with_the_same_grip(table["hand"])
    if not isinstance(name, str):
        return
    for setting, hash_name in _PARAMETER_FILES.items():
        file = table.get(setting)
        if isinstance(file, str) and file and not _is_the_same(file, metadata.get(hash_name)):
            words = f"device.{setting} = {file!r} is no longer the file of the run: the device cannot be compared."
            yield Finding("device", INCOMPLETE, words)
            return
    package = metadata.get("device_package")
    if package and name not in BACKENDS:
        words = f"the device {name!r} belongs to the package {str(package)[:80]!r}, which is not installed here."
        yield Finding("device", INCOMPLETE, words)
        return
    try:
        spec = create_device(name, table, clock=Clock(1.0 / metadata["rate_hz"])).spec
    except HapticError as error:
        yield Finding("device", INCOMPLETE, f"the device of the configuration cannot be made here: {error}")
        return
    differing = _differing(metadata["device"], json.loads(json.dumps(asdict(spec))))
    if differing:
        words = f"the data sheet is not that of the configured device: {'; '.join(differing)}."
        if metadata.get("program_sha256") == program_hash():
            yield Finding("device", VIOLATED, words)
        else:
            yield Finding("device", OK, f"{words} Another version of the program made the recording.")


def _law(recording: Recording) -> Iterator[Finding]:
    """Yield a finding if a law of another package was computed by a different version of that package."""
    from haptics.elements.tables import plugin_of

    for entry in recording.settings:
        origin, law = entry.get("law_package"), entry.get("law", {})
        here = plugin_of(law) if origin and "source" not in law else None
        if here is not None and here.origin != origin:
            words = f"the law {law['name']!r} was that of the package {str(origin)[:80]!r}, here {here.origin!r}."
            yield Finding("law", OK, words)
            return


def _measured(recording: Recording) -> Iterator[Finding]:
    """Yield a finding if the file of the measured device properties has changed since the run.

    Older recordings do not contain its hash.
    """
    metadata = recording.metadata
    file, digest = metadata.get("configuration", {}).get("session", {}).get("measured"), metadata.get(_MEASURED)
    if digest is None:
        return
    if not isinstance(file, str) or not file:
        words = f"the recording has {_MEASURED}, but its session names no such file."
        yield Finding("configuration", VIOLATED, words)
    elif not _is_the_same(file, digest):
        words = f"session.measured = {file[:200]!r} is no longer the file of the run; its advice went by that."
        yield Finding("measured", OK, words)


def _is_the_same(file: str, digest: Any) -> bool:
    from haptics.files import sha256_of

    try:
        return bool(sha256_of(file) == digest)
    except HapticError:
        return False


def _differing(stored: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Describe the entries of `stored` that differ from `expected`.

    Entries missing in older recordings are skipped.
    """
    return [
        f"{name} = {str(stored[name])[:40]}, not {value}"
        for name, value in expected.items()
        if name in stored and stored[name] != value
    ]
