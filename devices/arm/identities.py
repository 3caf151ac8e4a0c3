"""USB identities of the arm's parts: plain data for drivers and for udev rules."""

from __future__ import annotations

ODRIVES = ("1209:0d31", "1209:0d32", "1209:0d33")
"""USB identities (vendor:product) of ODrives with firmware 0.5."""

OPTOFORCE = ("04d8:000a",)
"""USB identities (vendor:product) of OptoForce DAQ units."""
