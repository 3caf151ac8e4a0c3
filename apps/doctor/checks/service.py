"""Check of the Haply service, which provides access to an Inverse3.

The check does not connect to it.
"""

from __future__ import annotations

from apps.doctor.finding import Finding, ok
from apps.doctor.machine import Machine
from devices.inverse3.service import PORT

BACKEND = "inverse3"
"""Backend (``--device``) that uses the service."""

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENS = "0A"


def listens(machine: Machine, port: int = PORT) -> bool:
    """Return True if a program listens on a TCP `port` of this machine, according to /proc."""
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
    """Check whether a program listens on the port of the Haply service."""
    if listens(machine):
        return ok(f"port {PORT} is listened at: the Haply service runs, as far as can be told without asking it")
    return ok(f"no Haply service was seen at port {PORT}; only the device {BACKEND} needs one")
