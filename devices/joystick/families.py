"""Quirks of the families of force-feedback sticks that their descriptors do not state.

The descriptor states everything else: report numbers, ranges, the coding of device control, the existence of a start
delay. A stick of an unknown family is driven as `GENERIC`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """Family of sticks with the same quirks.

    Attributes
    ----------
    name, title : str
        Short name and full name.
    identities : tuple of str
        ``vendor:product`` in lower-case hexadecimal digits.
    no_trigger : int
        Value of the trigger button field for an effect without trigger button. By the standard, 0 and 255 outside the
        field's range both mean "no button", but some firmware accepts only one of them.
    stale_block : int
        Effect block in which the operating system may have left a centring spring that a reset does not stop; 0 if
        none.
    load_time : float
        Time that the device needs to allocate an effect before its status may be requested [s].
    report_interval : float
        Minimum time between output reports, regardless of the endpoint's interval [s].
    """

    name: str
    title: str
    identities: tuple[str, ...] = ()
    no_trigger: int = 0
    stale_block: int = 0
    load_time: float = 0.0
    report_interval: float = 0.0

    def out_interval(self, endpoint: float) -> float:
        """Return the shortest time between two output reports of the driver [s] for an endpoint interval [s].

        The pause that a family needs begins when the device has accepted a report. The next report then waits for the
        next transfer slot of the endpoint.
        """
        return endpoint + self.report_interval


GENERIC = Family("generic", "a stick of the Physical Interface Device class")

FAMILIES = (
    Family("sidewinder", "Microsoft SideWinder Force Feedback 2 and Wheel", ("045e:001b", "045e:0034"), stale_block=1),
    Family("openffboard", "OpenFFBoard joystick", ("1209:ffb0",)),
    Family("arduino-ffb", "Arduino Leonardo or Micro with a force feedback library", ("2341:8036", "2341:8037")),
    Family(
        "adapt-ffb",
        "adapt-ffb-joy adapter for gameport joysticks",
        ("03eb:204e", "03eb:2056"),
        no_trigger=0xFF,
        stale_block=1,
        load_time=5e-3,
        report_interval=2e-3,
    ),
    Family("rhino", "VPforce Rhino", ("ffff:2055",)),
    Family("ffbeast", "FFBeast joystick", ("045b:58f9",)),
)


def family_of(identity: str) -> Family:
    """Return the family of a stick by its USB identity ``vendor:product``, `GENERIC` if unknown."""
    return next((family for family in FAMILIES if identity in family.identities), GENERIC)
