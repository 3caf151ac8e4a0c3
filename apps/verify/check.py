"""Verification of a recording: checks of the metadata, then of the ticks in windows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from apps.verify import description
from apps.verify.certificate import check_certificate
from apps.verify.commands import check_admittance, check_force_bounds, check_impedance, check_reference_bounds
from apps.verify.contact import Contact
from apps.verify.description import Gate
from apps.verify.energy import Controller, Ledger
from apps.verify.findings import Findings
from apps.verify.history import EnvelopeTracker
from apps.verify.recorded import Recorded, Window
from apps.verify.samples import Samples, check_safe_output

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

    Only the ticks before the first gap are checked.

    Raises
    ------
    RecordingError
        If the folder is not a recording, or its ticks cannot be read.
    """
    run, findings = Recorded.open(folder), Findings()
    for number, check in enumerate(_BESIDE_THE_ROWS):
        findings.begin(number)
        try:
            check(run, findings)
        except _WRONG as error:
            _not_checked(check.__name__, error, findings)
    _check_ticks(run, findings)
    return run, findings


def _check_ticks(run: Recorded, findings: Findings) -> None:
    """Check the ticks window by window.

    A check that fails with an exception is not repeated.
    """
    first = len(_BESIDE_THE_ROWS)
    checks: dict[str, tuple[int, Callable[[Window, Findings], None]]] = {
        "settings": (_SETTINGS, description.check_versions),
        "times": (first, description.check_times),
        "permissions": (first + 1, description.check_permissions),
        "ending": (first + 2, description.check_ending),
        "gate": (first + 3, Gate().check),
        "physics": (first + 4, _Physics(findings, first + 4).check),
    }
    for window in run.windows():
        findings.set_window(window)
        for name, (number, check) in list(checks.items()):
            findings.begin(number)
            try:
                check(window, findings)
            except _WRONG as error:
                _not_checked(name, error, findings)
                del checks[name]
    findings.set_window(None)


def _not_checked(name: str, error: Exception, findings: Findings) -> None:
    subject = name.removeprefix("check_").strip("_")
    findings.lack(subject, f"{subject} could not be checked: the description is not as it should be ({error!r:.120}).")


class _Physics:
    """Checks of samples, contacts, commands and energy, which keep their state between windows."""

    def __init__(self, findings: Findings, number: int) -> None:
        self._number = number
        self._follower: EnvelopeTracker | None = None
        self._samples, self._contact = Samples(), Contact(findings)
        self._controller, self._ledger = Controller(), Ledger()

    def check(self, run: Window, findings: Findings) -> None:
        """Check the ticks of the next window."""
        self._follower = self._follower or EnvelopeTracker(run.whole)
        history = self._follower.follow(run)
        with np.errstate(all="ignore"):
            findings.begin(self._number, 0)
            self._samples.check(run, findings)
            check_safe_output(run, history, findings)
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
                    dampers = added[stretch.rows], loose[stretch.rows]
                    check_impedance(stretch, history, dampers, findings)
                else:
                    check_admittance(stretch, history, findings)
            findings.begin(self._number, 4)
            self._ledger.check(run, history, (contact.stored, contact.doubt), contact.walls.stiffness, findings)
            (check_force_bounds if run.impedance else check_reference_bounds)(run, findings)
