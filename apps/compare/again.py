"""Repeat the hand motion of a recording with other settings.

Either run the session twice without a clock, or compute the answer of another element to the recorded samples.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from apps.session.run import record_offline
from apps.settings.config import SessionConfig, assign, complete, parse_assignment
from apps.settings.models import Table
from devices import has_simulated_hand
from haptics.device import Causality
from haptics.errors import ConfigurationError
from haptics.recording.recording import Recording
from haptics.records import Rows, with_missing_columns

_VIRTUAL = {Causality.IMPEDANCE: "virtual-joystick", Causality.ADMITTANCE: "virtual-arm"}


def twice(recording: Recording, assignments: Sequence[str], folder: Path) -> tuple[Recording, Recording]:
    """Repeat a recorded session without a clock, as recorded and with other settings; return both.

    A simulated hand moves as before. The input of a mouse or a participant is replaced by a hand that follows the
    recorded path of the handle on a virtual device.

    Parameters
    ----------
    assignments : sequence of str
        Settings of the second run, as for ``--set``: ``law.name=stribeck``.
    folder : Path
        Folder of the new recordings.

    Raises
    ------
    ConfigurationError
        If a setting is invalid, or the recording does not contain its configuration.
    """
    tables = _configuration(recording)
    tables["session"] |= {"clock": "off", "duration": len(recording) / tables["session"]["rate"], "faults": []}
    device = tables["device"]
    if not has_simulated_hand(device["name"], device) or device.get("hand", {}).get("name") == "mouse":
        folder.mkdir(parents=True, exist_ok=True)
        path, begin = folder / "hand.csv", float(recording.read(0, 1, ("time",))["time"][0])
        with open(path, "w", encoding="utf-8") as file:
            file.write("t,x,y\n")
            for rows in recording.chunks(("time", "position"), 10_000):
                values = np.column_stack((rows["time"] - begin, rows["position"]))
                np.savetxt(file, values, delimiter=",", fmt="%.9g")
        causality = Causality(recording.metadata.get("causality") or recording.metadata["device"]["causality"])
        hand = {"name": "recorded", "file": str(path), "centre": False}
        tables |= {"device": {"name": _VIRTUAL[causality], "hand": hand}, "envelope": {}}
    runs = complete(tables), _changed(tables, assignments)
    first, second = (record_offline(config, folder / name) for config, name in zip(runs, "ab", strict=True))
    return first, second


def open_loop(recording: Recording, assignments: Sequence[str]) -> tuple[Iterator[Rows], SessionConfig]:
    """Return the rows with the answer of another element to the same samples, and its configuration.

    The hand did not feel this answer; with the other element it would have moved differently. The rows are yielded in
    chunks.

    Raises
    ------
    ConfigurationError
        If a setting is invalid, or the samples are not finite.
    """
    from haptics.elements.models import ElementRunner

    config = _changed(_configuration(recording), assignments)
    impedance, rate = config.causality is Causality.IMPEDANCE, config.session.rate

    def answered() -> Iterator[Rows]:
        runner, before = ElementRunner(config.built_element), np.zeros((1, 2))
        for piece in recording.chunks(rows=20_000):
            rows = with_missing_columns(piece)
            answer = runner.simulate(rows["velocity" if impedance else "force"])
            rows["friction_force"], rows["displacement"] = answer.friction_force, answer.displacement
            rows["sticking"] = answer.sticking
            rows["proxy"] = rows["position"] - answer.displacement
            stretching = np.diff(answer.displacement, axis=0, prepend=before) * rate
            rows["sliding_velocity"] = rows["velocity"] - stretching if impedance else answer.velocity
            for name in ("command", "command_unlimited", "injected_energy"):
                rows[name] = 0.0
            before = answer.displacement[-1:]
            yield rows

    return answered(), config


def _configuration(recording: Recording) -> Table:
    tables = recording.metadata.get("configuration")
    if not isinstance(tables, dict) or not {"session", "device", "law", "element"} <= tables.keys():
        raise ConfigurationError(f"{recording.folder} has no configuration in its metadata and cannot be run again.")
    return copy.deepcopy(tables)


def _changed(tables: Table, assignments: Sequence[str]) -> SessionConfig:
    """Return the configuration with the assignments applied.

    A new law or model starts from its default values.
    """
    changed: dict[str, Any] = copy.deepcopy(tables)
    asked = [parse_assignment(text) for text in assignments]
    for table, name, value in asked:
        if (table, name) == ("law", "name") and value != changed["law"].get("name"):
            changed["law"] = {}
        if (table, name) == ("session", "model") and value != changed["session"]["model"]:
            changed["element"] = {}
    for table, name, value in asked:
        assign(changed, table, name, value)
    return complete(changed)
