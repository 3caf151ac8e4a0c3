"""USB identities of hAPI boards, as plain data for the driver and for the udev rules of its port."""

from __future__ import annotations

IDENTITIES = (
    "2341:804d",
    "2341:824d",
    "2a03:804e",
    "03eb:2157",
    "2341:003e",
    "2a03:003e",
    "2341:003d",
    "2a03:003d",
)
"""USB identities (vendor:product) of the Arduino Zero, M0 and Due boards that serve as hAPI boards."""
