"""USB and serial ports for drivers, and guardian processes (watchdogs) for devices whose driver died."""
