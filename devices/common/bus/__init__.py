"""USB and serial ports, as several drivers need them, and the guardians (watchdogs) of devices whose driver died."""
