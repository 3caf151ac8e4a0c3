from apps.scripting.session import open_session
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
    ParameterWarning,
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
    "ParameterWarning",
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
    "open_session",
    "simulate",
]

def main() -> int: ...
