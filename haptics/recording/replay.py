"""Bit-exact replay: recompute every tick of a recording from the recorded samples.

The kernel that ran in the servo runs again over the recorded positions, velocities, forces and sample ages, with the
parameters of each tick. All outputs of element and envelope must agree bit for bit. A difference means that code,
parameters or data differ from the original run.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from haptics.device import Causality, DeviceSpec
from haptics.elements.tables import plugin_of
from haptics.errors import RecordingError
from haptics.recording.checks import VIOLATED, Finding, Scan, check_recording, verdict_of
from haptics.recording.recording import Recording
from haptics.records import COMPUTED, FORMATS, Rows, with_missing_columns
from haptics.rendering.envelope import ENVELOPE_FLAGS, Limits
from haptics.rendering.programs import Program, read_program
from haptics.rendering.rendering import Rendering

MAX_LAWS = 4
"""Maximum number of custom law functions in a recording.

A session changes the parameters of a function but not its source. Compiling a function takes seconds.
"""

EASES_DOWN = 3
"""First format in which the force also eases down, not only up, after a change of parameters."""

_ROWS_PER_CALL = 32_768  # number of rows computed at a time


@dataclass(frozen=True)
class Verification:
    """Result of a replay.

    Attributes
    ----------
    ticks : int
        Number of recomputed ticks.
    mismatches : int
        Number of ticks in which any bit of a compared column differs.
    first_mismatch : int or None
        Number of the first such tick.
    findings : tuple of Finding
        Deviations, and checks that were not possible.
    """

    ticks: int
    mismatches: int
    first_mismatch: int | None
    findings: tuple[Finding, ...] = ()

    @property
    def verdict(self) -> str:
        """``ok``, ``violated`` or ``incomplete``."""
        return verdict_of(self.findings)


def verify(recording: Recording) -> Verification:
    """Check the rows of `recording`, recompute every tick and compare bit for bit.

    If ticks are missing, only the ticks before the gap are recomputed, because the state of the element after it is
    unknown.

    Raises
    ------
    RecordingError
        If the recording lacks information that a replay needs.
    """
    scan = Scan.of(recording)
    mismatches, first_mismatch = 0, None
    try:
        rendering, current = None, None
        compared = [name for name in COMPUTED if FORMATS.get(name, 0) <= recording.metadata["format"]]
        for rows in recording.chunks(rows=_ROWS_PER_CALL, stop=scan.gap):
            if rendering is None:
                sources = {str(entry["law"].get("source")) for entry in recording.settings if "law" in entry}
                if len(sources) > MAX_LAWS:  # compiling each takes seconds
                    raise RecordingError(
                        f"{recording.folder} has {len(sources)} functions of laws; {MAX_LAWS} at most."
                    )
                journal = {entry["version"]: entry for entry in recording.settings}
                first, eases = _program(recording, journal[0]), recording.metadata["format"] >= EASES_DOWN
                limits = Limits(**recording.metadata["limits"])
                rendering = Rendering(first, spec_of(recording.metadata), limits, eases_down=eases)
            versions = np.array(rows["settings_version"])
            edges = [0, *(np.flatnonzero(np.diff(versions)) + 1).tolist(), len(versions)]
            for start, stop in itertools.pairwise(edges):  # rows with the same settings
                version = int(versions[start])
                if version != current:
                    entry, current = journal[version], version
                    program = _program(recording, entry) if version else first
                    rendering.switch_program(program, int(entry.get("program", 0)), version)
                recorded = with_missing_columns(rows[start:stop])
                where = np.flatnonzero(_differing(recorded, rendering.recompute(recorded), compared))
                mismatches += len(where)
                if first_mismatch is None and len(where):
                    first_mismatch = int(recorded["tick"][where[0]])
    except RecordingError:
        raise
    except (ArithmeticError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise RecordingError(f"{recording.folder} does not hold what a replay needs: {error}.") from error
    findings = list(check_recording(recording, scan))
    if mismatches:
        words = f"{mismatches} of {scan.gap} ticks come out differently when they are computed again."
        findings.insert(0, Finding("replay", VIOLATED, words, first_mismatch))
    return Verification(scan.gap, mismatches, first_mismatch, tuple(findings))


def _program(recording: Recording, entry: dict[str, Any]) -> Program:
    """Return the program of a journal entry; its law may be a class of a package, which must be installed."""
    origin, law = entry.get("law_package"), entry.get("law", {})
    if origin is not None and "source" not in law and plugin_of(law) is None:
        raise RecordingError(
            f"{recording.folder}: its law {law['name']!r} belongs to the package {str(origin)[:80]!r}, which is not "
            "installed here; install it, if you trust it, to replay the recording."
        )
    causality = Causality(recording.metadata["device"]["causality"])
    return read_program(recording.folder, entry, causality, 1.0 / recording.metadata["rate_hz"])


def spec_of(metadata: dict[str, Any]) -> DeviceSpec:
    """Return the device specification from the metadata of a recording."""
    table = dict(metadata["device"])
    table["causality"] = Causality(table["causality"])
    return DeviceSpec(**table)


def _differing(rows: Rows, computed: Rows, columns: list[str]) -> NDArray[np.bool_]:
    """Return a mask of the ticks in which any bit of `columns` or of the envelope's flags differs.

    Two nan are equal only if their bits are.
    """
    different: NDArray[np.bool_] = ((rows["status"] ^ computed["status"]) & ENVELOPE_FLAGS) != 0
    for name in columns:
        ours = np.ascontiguousarray(computed[name]).reshape(len(rows), -1).view(np.uint8)
        theirs = np.ascontiguousarray(rows[name]).reshape(len(rows), -1).view(np.uint8)
        different |= (ours != theirs).any(axis=1)
    return different
