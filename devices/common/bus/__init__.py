"""USB and serial ports, as several drivers need them, and the guardians that let go of a device whose driver died."""
