"""Drivers connected to emulated devices, selected by ``device.emulated = true``.

A driver does not depend on emulators (`devices.emulators`) or on software hands (`devices.virtual.hands`). Each module
here derives a class from one driver that provides the far end of its communication, the true parameters of the emulated
device, and the settings that only an emulated device has (`devices.emulated.settings`). The registry
(`devices.create_device`) uses that class in place of the driver.
"""
