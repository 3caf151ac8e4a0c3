"""Force-feedback joysticks that speak the USB HID Physical Interface Device class.

- `devices.joystick.usages`: the HID usages by name.
- `devices.joystick.items`, `layout`, `descriptor`: a report descriptor as reports and fields.
- `devices.joystick.report`: the bytes of a report from values and back.
"""
