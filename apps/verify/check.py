"""Verification of a recording: checks of the metadata, then of the ticks in windows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from apps.verify import description, envelope
from apps.verify.certificate import check_certificate
from apps.verify.contact import Contact
from apps.verify.energy import Controller, Ledger
from apps.verify.findings import Findings
from apps.verify.recorded import Recorded, Window

_BESIDE_THE_ROWS = (
    description.check_end,
    description.check_hash,
    description.check_columns,
    description.check_settings,
    description.check_configuration,
    description.check_limits,
    description.check_ticks,
    description.check_origin,
    check_certificate,
)

_SETTINGS = _BESIDE_THE_ROWS.index(description.check_settings)

_WRONG = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""Exceptions that malformed metadata may cause in a check."""


def verify(folder: Path) -> tuple[Recorded, Findings]:
    """Verify the recording in `folder`.

    Only the ticks before the first gap are checked, window by window. A check that fails with an exception is not
    repeated.

    Raises
    ------
    RecordingError
        If the folder is not a recording, or its ticks cannot be read.
    """
    run, findings, first = Recorded(folder), Findings(), len(_BESIDE_THE_ROWS)

    def complete(number: int, name: str, check: Callable[[Any, Findings], None], part: Recorded) -> bool:
        """Check a part of the recording; return False if its description does not permit that."""
        findings.begin(number)
        try:
            check(part, findings)
        except _WRONG as error:
            words = f"{name} could not be checked: the description is not as it should be ({error!r:.120})."
            findings.lack(name, words)
            return False
        return True

    for number, check in enumerate(_BESIDE_THE_ROWS):
        complete(number, check.__name__.removeprefix("check_"), check, run)
    checks: dict[str, tuple[int, Callable[[Any, Findings], None]]] = {
        "settings": (_SETTINGS, description.check_versions),
        "times": (first, description.check_times),
        "permissions": (first + 1, description.check_permissions),
        "ending": (first + 2, description.check_ending),
        "gate": (first + 3, description.Gate().check),
        "physics": (first + 4, _Physics(findings, first + 4).check),
    }
    for window in run.windows():
        findings.set_window(window)
        checks = {name: one for name, one in checks.items() if complete(one[0], name, one[1], window)}
    findings.set_window(None)
    return run, findings


class _Physics:
    """Checks of samples, contacts, commands and energy, which keep their state between windows."""

    def __init__(self, findings: Findings, number: int) -> None:
        self._number = number
        self._follower: envelope.EnvelopeTracker | None = None
        self._samples, self._contact = envelope.Samples(), Contact(findings)
        self._controller, self._ledger = Controller(), Ledger()

    def check(self, run: Window, findings: Findings) -> None:
        """Check the ticks of the next window."""
        self._follower = self._follower or envelope.EnvelopeTracker(run.whole)
        history = self._follower.follow(run)
        with np.errstate(all="ignore"):
            findings.begin(self._number, 0)
            self._samples.check(run, findings)
            envelope.check_safe_output(run, history, findings)
            findings.begin(self._number, 1)
            contact = self._contact
            contact.set_window(run, history)
            stretches = [stretch for stretch in run.stretches() if stretch.version in run.journal]
            for stretch in stretches:
                findings.begin(self._number, 2, stretch.segment)
                contact.check(stretch)
            added, loose = self._controller.damping(run, history, contact.stored, contact.walls)
            for stretch in stretches:
                findings.begin(self._number, 3, stretch.segment)
                if run.impedance:
                    envelope.check_impedance(stretch, history, (added[stretch.rows], loose[stretch.rows]), findings)
                else:
                    envelope.check_admittance(stretch, history, findings)
            findings.begin(self._number, 4)
            self._ledger.check(run, history, (contact.stored, contact.doubt), contact.walls.stiffness, findings)
            (envelope.check_force_bounds if run.impedance else envelope.check_reference_bounds)(run, findings)
