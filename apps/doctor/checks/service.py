"""The service that an Inverse3 is reached through: whether it runs. It is not connected to, so nothing is disturbed."""

from __future__ import annotations

from apps.doctor.finding import Finding, ok
from apps.doctor.machine import Machine
from devices.inverse3.identities import PORT

BACKEND = "inverse3"
"""The device of ``--device`` that uses it."""

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS = "0A"


def listens(machine: Machine, port: int = PORT) -> bool:
    """Tell whether some program listens at a TCP `port` of this machine, as Linux shows it."""
    wanted = f"{port:04X}"
    for table in _TABLES:
        try:
            lines = machine.path(table).read_text(errors="replace").splitlines()[1:]
        except OSError:
            continue
        for fields in map(str.split, lines):
            if len(fields) > 3 and fields[1].rpartition(":")[2] == wanted and fields[3] == _LISTENS:
                return True
    return False


def haply_service(machine: Machine) -> Finding:
    """See whether something listens where the Haply service does."""
    if listens(machine):
        return ok(f"port {PORT} is listened at: the Haply service runs, as far as can be told without asking it")
    return ok(f"no Haply service was seen at port {PORT}; only the device {BACKEND} needs one")
