"""What parts of the arm call themselves on USB: plain data, for drivers and for who writes rules for their ports."""

from __future__ import annotations

ODRIVES = ("1209:0d31", "1209:0d32", "1209:0d33")
"""USB identities (vendor:product) of ODrives with firmware 0.5."""

OPTOFORCE = ("04d8:000a",)
"""Those of OptoForce DAQ units."""
