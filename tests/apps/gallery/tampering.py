"""Showings in which the physics is not what the demonstration says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.gallery.showing import Showing, Tables
from haptics.recording.recording import Recording


class Tampered(Showing):
    """Runs every session with one setting changed behind the demonstration's back."""

    def __init__(self, name: str, folder: Path, key: str, value: Any) -> None:
        super().__init__(name, folder, brief=True)
        self._table, _, self._key = key.partition(".")
        self._value = value

    def beside(self, tables: Tables, words: str) -> Recording:
        changed = {**tables.get(self._table, {}), self._key: self._value}
        return super().beside({**tables, self._table: changed}, words)
