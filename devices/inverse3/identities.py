"""Where the Haply service listens by default; plain data, for the driver and for whoever looks whether it is there."""

from __future__ import annotations

PORT = 10001
ADDRESS = f"ws://localhost:{PORT}"
