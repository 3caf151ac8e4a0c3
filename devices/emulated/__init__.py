"""The real drivers in front of emulated devices, which is what ``device.emulated = true`` asks for.

A driver knows nothing of emulators (`devices.emulators`) and of hands in software (`devices.virtual.hands`). Each
module here derives a class from one driver, which gives it the far end of its wire, the true parameters of what is
behind, and the settings that only an emulated device has (`devices.emulated.settings`). The registry
(`devices.create_device`) takes that class in the driver's place.
"""
