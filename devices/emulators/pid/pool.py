"""Pool of effect blocks and its reports: create new effect, block load, block free, pool."""

from __future__ import annotations

import struct

from devices.emulators.pid.effects import Effect
from devices.emulators.pid.profiles.profile import Profile

SUCCESS, FULL, ERROR = 1, 2, 3
"""Status in the block load report."""

_BLOCK_SIZE = 32
"""Memory of a block [byte]."""

_MANAGED = 0b01
"""Flag: the device manages its pool itself."""


class Pool:
    """Effects by block number.

    Parameters
    ----------
    profile : Profile
        Number of blocks, and properties of the firmware's replies.

    Attributes
    ----------
    blocks : dict of Effect
        Blocks in use.
    full : bool
        Whether the pool reports that it is full, regardless of its contents: a fault on demand.
    stale : bool
        Whether block load reports the previous request, as if not updated yet: a fault on demand.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.full = self.stale = False
        self.clear()

    def clear(self) -> None:
        """Free all blocks."""
        self.blocks: dict[int, Effect] = {}
        self._answer = (0, ERROR)
        self._older = (0, ERROR)

    def create(self, kind: int) -> None:
        """Reserve a block for an effect of type `kind`; block load reports the result."""
        profile = self._profile
        self._older = self._answer
        old = self._answer[0] if profile.stale_when_full else 0
        free = next((block for block in range(1, profile.blocks + 1) if block not in self.blocks), None)
        if not 1 <= kind <= profile.types:
            self._answer = old, ERROR
        elif free is None or self.full:
            self._answer = old, FULL
        else:
            self.blocks[free] = Effect(kind)
            self._answer = free, SUCCESS

    @property
    def loaded_block(self) -> int:
        """Block that the next block load reports."""
        return self._answer[0]

    def free(self, block: int) -> None:
        """Free a block."""
        self.blocks.pop(block, None)

    def load_report(self) -> bytes:
        """Return the feature report block load."""
        block, status = self._older if self.stale else self._answer
        if self._profile.load_once and not self.stale:
            self._answer = 0, self._answer[1]
        left = max(self._profile.memory - _BLOCK_SIZE * len(self.blocks), 0)
        return struct.pack("<BBBH", self._profile.load, block, status, left)

    def pool_report(self) -> bytes:
        """Return the feature report pool, for a pool that the device manages."""
        flags = 0b11 if self._profile.load_once else _MANAGED
        return struct.pack("<BHBB", self._profile.pool, self._profile.memory, self._profile.pool_says, flags)
