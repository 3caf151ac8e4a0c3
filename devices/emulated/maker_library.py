"""Driver with an emulated maker's library, whose device runs in another process (`devices.emulators.native`)."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

from devices.emulated.settings import EmulationSettings, too_busy
from devices.emulators import child
from devices.emulators.native.far_end import FarEnd, Maker


class MakerLibraryEmulation:
    """Part of a driver that runs the emulated device from ``open`` on."""

    settings: EmulationSettings
    _lost = 0.0

    def _run_device(self, resources: contextlib.ExitStack, module: str, maker: Maker, body: Mapping[str, Any]) -> str:
        """Run a device; return the path of its library.

        Parameters
        ----------
        resources : ExitStack
            Receives the clean-up.
        module : str
            Module of the emulator.
        maker : Maker
            Maker of the library.
        body : mapping
            Properties of the device, fields of `devices.emulators.native.far_end.Body`.
        """
        own = self.settings
        table = {"devices": [body], "faults": list(own.wire_faults)}
        library = resources.enter_context(child.spawn(module, table, own.NOUN))
        far_end, self._lost = FarEnd(library, maker), 0.0

        def record_stall() -> None:  # after the forces are off, and before the emulator ends
            self._lost = 0.0 if own.wire_faults else far_end.stalled()

        resources.callback(record_stall)
        return library

    def explain(self) -> str:
        """Return an explanation if the emulator was starved before it closed; see `haptics.device.Device`."""
        return too_busy(self.settings.NOUN, self._lost)
