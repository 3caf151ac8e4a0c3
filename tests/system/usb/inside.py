"""The first program in a kernel of its own: gives it randomness, for which others would wait for ever, and goes on."""

from __future__ import annotations

import fcntl
import os
import runpy
import struct
import sys

ADD_ENTROPY = 0x40085203
"""``RNDADDENTROPY`` of linux/random.h."""


def add_entropy(seed: bytes) -> None:
    """Tell the kernel that every bit of `seed` is random."""
    with open("/dev/random", "wb") as device:
        fcntl.ioctl(device, ADD_ENTROPY, struct.pack("<ii", 8 * len(seed), len(seed)) + seed)


if __name__ == "__main__":
    add_entropy(bytes.fromhex(os.environ.pop("SEED")))
    del sys.argv[0]
    runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
