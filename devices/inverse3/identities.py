"""Default address of the Haply service, as plain data for the driver and for system checks."""

from __future__ import annotations

PORT = 10001
ADDRESS = f"ws://localhost:{PORT}"
