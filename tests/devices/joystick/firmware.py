"""Firmware of sticks and wheels, as far as the axes of their motors go: which items their Set Effect reports have.

The three with files are descriptors as a whole; of the others the items are written here that say which axes have a
motor, within the same report.
"""

from __future__ import annotations

from dataclasses import dataclass

from tests.devices.joystick.descriptors import descriptor_of

USAGES = {"x": "0930", "y": "0931", "pointer": "0901a100", "end": "c0"}


@dataclass(frozen=True)
class Firmware:
    """One firmware: how many of its axes have a motor, its whole descriptor, or the items that say so.

    Attributes
    ----------
    motors : int
        The truth.
    file : str
        Name of its descriptor in the folder of the emulators; empty if it is written from the rest.
    enable : str
        Items of Axes Enable.
    largest : int
        Logical maximum of an enable bit.
    bits, padding : int
        Report count there, and of the constant bits behind direction enable.
    ordinals : int
        How many of them Direction names.
    angles, size : int
        How many angles it holds, and of how many bits.
    """

    motors: int
    file: str = ""
    enable: str = ""
    largest: int = 1
    bits: int = 2
    padding: int = 5
    ordinals: int = 2
    angles: int = 2
    size: int = 8

    @property
    def descriptor(self) -> bytes:
        if self.file:
            return descriptor_of(self.file)
        axes = "".join(USAGES[word] for word in self.enable.split())
        enable = f"0955a102 0501 {axes} 1500 25{self.largest:02x} 7501 95{self.bits:02x} 9102"
        enable += " c0" * (1 + self.enable.count("pointer"))
        ordinals = "".join(f"0b{number:02x}000a00" for number in range(1, self.ordinals + 1))
        direction = f"0957a102 {ordinals} 1500 26ff00 75{self.size:02x} 95{self.angles:02x} 9102 c0"
        axes_in = "0501 0930 0931 0932 0933 160180 26ff7f 7510 9504 8102"
        items = (
            "0501 0904 a101 8501",
            axes_in,
            "050f 0921 a102 8501 0922 1501 2528 7508 9501 9102",
            enable if self.enable else "",
            f"050f 0956 1500 2501 7501 9501 9102 95{self.padding:02x} 9103",
            direction if self.ordinals else "",
            "c0 c0",
        )
        return bytes.fromhex(" ".join(items))


FIRMWARE = {
    "SideWinder Force Feedback 2": Firmware(2, file="sidewinder_ff2"),
    "OpenFFBoard, two axes": Firmware(2, file="openffboard"),
    "OpenFFBoard, one axis": Firmware(1, file="openffboard_wheel"),
    "Arduino library, X and Y": Firmware(2, file="arduino"),
    "Arduino library of 2012, one angle": Firmware(2, enable="x y", angles=1),
    "Arduino wheel, one motor": Firmware(1, enable="x y", bits=1, padding=6, angles=1, size=16),
    "Arduino wheel, two motors": Firmware(2, enable="x y", angles=1, size=16),
    "adapter for gameport sticks": Firmware(2, enable="x y", angles=2),
    "axes inside a pointer": Firmware(2, enable="pointer x y", padding=1),
    "wheel with one ordinal": Firmware(1, enable="x", largest=0, bits=1, padding=6, ordinals=1, angles=1, size=16),
    "wheel without axes enable": Firmware(1, ordinals=1, angles=1, size=16),
}
"""Eleven of them by name."""
