"""The whole verification of a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from apps.verify import clock, description
from apps.verify.certificate import check_certificate
from apps.verify.contact.check import Contact
from apps.verify.envelope import admittance, impedance
from apps.verify.envelope.energy import check_energy
from apps.verify.envelope.gate import check_gate
from apps.verify.envelope.history import History, follow
from apps.verify.envelope.passivity import damping
from apps.verify.envelope.samples import check_safe_output, check_samples
from apps.verify.findings import Findings
from apps.verify.recorded import Recorded

_BESIDE_THE_ROWS = (
    description.check_end,
    description.check_hash,
    description.check_columns,
    description.check_settings,
    description.check_configuration,
    description.check_limits,
    clock.check_ticks,
    clock.check_origin,
    check_certificate,
)
_OF_THE_ROWS = (clock.check_times, clock.check_permissions, clock.check_ending, check_gate)

_WRONG = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a description that is no honest one may lead to."""


def verify(folder: Path) -> tuple[Recorded, Findings]:
    """Verify the recording in `folder`; ticks after the first that is missing cannot be looked at.

    Raises
    ------
    RecordingError
        If it is no recording.
    """
    run, findings = Recorded.open(folder), Findings()
    for check in _BESIDE_THE_ROWS:
        try:
            check(run, findings)
        except _WRONG as error:
            _not_checked(check.__name__, error, findings)
    if run.count:
        for check in (*_OF_THE_ROWS, _physics):
            try:
                check(run, findings)
            except _WRONG as error:
                _not_checked(check.__name__, error, findings)
    return run, findings


def _not_checked(name: str, error: Exception, findings: Findings) -> None:
    what = name.removeprefix("check_").strip("_")
    findings.lack(what, f"{what} could not be checked: the description is not as it should be ({error!r:.120}).")


def _physics(run: Recorded, findings: Findings) -> None:
    """Check samples, contacts, commands and energy."""
    history = follow(run)
    with np.errstate(all="ignore"):
        check_samples(run, findings)
        check_safe_output(run, history, findings)
        _contacts(run, history, findings)
        (impedance if run.impedance else admittance).check_bounds(run, findings)


def _contacts(run: Recorded, history: History, findings: Findings) -> None:
    contact = Contact(run, history, findings)
    for stretch in run.stretches():
        if stretch.version not in run.journal:
            continue
        contact.check(stretch)
    added, loose = damping(run, history, contact.stored, contact.walls)
    for stretch in run.stretches():
        if stretch.version not in run.journal:
            continue
        if run.impedance:
            impedance.check_impedance(stretch, history, (added[stretch.rows], loose[stretch.rows]), findings)
        else:
            admittance.check_admittance(stretch, history, findings)
    check_energy(run, history, (contact.stored, contact.doubt), contact.walls.stiffness, findings)
