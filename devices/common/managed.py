"""Devices in a ``with`` statement: opened on the way in, closed on the way out, whatever happens between."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Self


class Managed(ABC):
    """A device that a ``with`` statement opens and closes."""

    @abstractmethod
    def open(self) -> None:
        """Open the device (`haptics.device.Device.open`)."""

    @abstractmethod
    def close(self) -> None:
        """Leave the device safe and close it; closing twice does nothing."""

    def __enter__(self) -> Self:
        """Open the device."""
        self.open()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the device."""
        self.close()
