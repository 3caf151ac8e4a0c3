"""Friction elements at 1 kHz, the device interface, the servo and the trace.

This layer depends on NumPy and numba only. It contains no driver, no window and no foreign file format. Its public
names are imported on first use, so that commands without computation start without numba.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from haptics.lazy import public_names

if TYPE_CHECKING:
    from haptics.clock import Clock, WallClock
    from haptics.device import Causality, Device, DeviceSpec, State
    from haptics.elements.models import (
        CompliantAdmittance,
        Element,
        InertialImpedance,
        MasslessImpedance,
        RigidAdmittance,
        Simulation,
        simulate,
    )
    from haptics.elements.network import Network, NetworkResult
    from haptics.errors import (
        AmbiguousLawWarning,
        CausalityError,
        ConfigurationError,
        DeviceFault,
        DeviceNotFoundError,
        DeviceOpenError,
        HapticError,
        RecordingError,
    )
    from haptics.friction.custom_law import CustomLaw, friction_law
    from haptics.friction.laws import (
        Asymmetric,
        ClosedForm,
        Coulomb,
        CoulombViscous,
        DeadZoneViscous,
        Elliptic,
        GaussianStribeck,
        Law,
        Stribeck,
    )
    from haptics.recording.recording import Recording
    from haptics.records import Permission, Status
    from haptics.servo.servo import Servo
    from haptics.trace import Trace

_HOMES = {
    "clock": ("Clock", "WallClock"),
    "device": ("Causality", "Device", "DeviceSpec", "State"),
    "elements.models": (
        "CompliantAdmittance",
        "Element",
        "InertialImpedance",
        "MasslessImpedance",
        "RigidAdmittance",
        "Simulation",
        "simulate",
    ),
    "errors": (
        "AmbiguousLawWarning",
        "CausalityError",
        "ConfigurationError",
        "DeviceFault",
        "DeviceNotFoundError",
        "DeviceOpenError",
        "HapticError",
        "RecordingError",
    ),
    "friction.custom_law": ("CustomLaw", "friction_law"),
    "friction.laws": (
        "Asymmetric",
        "ClosedForm",
        "Coulomb",
        "CoulombViscous",
        "DeadZoneViscous",
        "Elliptic",
        "GaussianStribeck",
        "Law",
        "Stribeck",
    ),
    "elements.network": ("Network", "NetworkResult"),
    "recording.recording": ("Recording",),
    "servo.servo": ("Servo",),
    "records": ("Permission", "Status"),
    "trace": ("Trace",),
}

__all__ = [
    "AmbiguousLawWarning",
    "Asymmetric",
    "Causality",
    "CausalityError",
    "Clock",
    "ClosedForm",
    "CompliantAdmittance",
    "ConfigurationError",
    "Coulomb",
    "CoulombViscous",
    "CustomLaw",
    "DeadZoneViscous",
    "Device",
    "DeviceFault",
    "DeviceNotFoundError",
    "DeviceOpenError",
    "DeviceSpec",
    "Element",
    "Elliptic",
    "GaussianStribeck",
    "HapticError",
    "InertialImpedance",
    "Law",
    "MasslessImpedance",
    "Network",
    "NetworkResult",
    "Permission",
    "Recording",
    "RecordingError",
    "RigidAdmittance",
    "Servo",
    "Simulation",
    "State",
    "Status",
    "Stribeck",
    "Trace",
    "WallClock",
    "friction_law",
    "simulate",
]


def main() -> int:
    """Run the command ``haptics`` of an installed package and return its exit status.

    The project installs four top-level packages. Two of their names are common enough to collide with other projects,
    so the command first checks that all of them come from the same installation.
    """
    place = Path(__file__).parents[1]
    for name in ("devices", "calibration", "apps"):
        found = importlib.util.find_spec(name)
        home = Path(found.origin).parents[1] if found is not None and found.origin else None
        if home != place:
            there = "is missing" if home is None else f"comes from another project ({home / name})"
            print(  # noqa: T201
                f"haptics: the package {name!r} {there}, but should lie in {place}. Install haptics in a "
                "virtual environment of its own.",
                file=sys.stderr,
            )
            return 2
    return int(importlib.import_module("apps.cli").run_process())


__getattr__, __dir__ = public_names(__name__, _HOMES)
