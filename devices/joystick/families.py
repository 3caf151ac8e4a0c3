"""Quirks of the families of force-feedback sticks: what differs and cannot be read from the descriptor.

Everything else (report numbers, ranges, how device control is coded, whether a start delay exists) the descriptor says.
A stick of no known family is driven as `GENERIC`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Family:
    """Sticks that have the same peculiarities.

    Attributes
    ----------
    name, title : str
        What a person calls it, and in full.
    identities : tuple of str
        ``vendor:product``, hexadecimal, small letters.
    no_trigger : int
        What to put into the field of the trigger button so that no button starts the effect. Outside the field's range
        both 0 and 255 stand for none by the standard; some firmware knows only one of them.
    stale_block : int
        Effect block in which the operating system may have left a centring spring that a reset does not stop; 0: none.
    load_time : float
        What the device takes to make room for an effect before it may be asked about it [s].
    report_interval : float
        Output reports must be at least this far apart, whatever the endpoint allows [s].
    """

    name: str
    title: str
    identities: tuple[str, ...] = ()
    no_trigger: int = 0
    stale_block: int = 0
    load_time: float = 0.0
    report_interval: float = 0.0

    def out_interval(self, endpoint: float) -> float:
        """Return the shortest time between two output reports of the driver [s], whose endpoint has this interval.

        The pause that a family needs begins when a report has been taken, and the next one waits for its turn again.
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


def family_of(vendor_id: int, product_id: int) -> Family:
    """Return the family of a stick by its USB identity, `GENERIC` if it is of none."""
    identity = f"{vendor_id:04x}:{product_id:04x}"
    return next((family for family in FAMILIES if identity in family.identities), GENERIC)
