"""Force-feedback joysticks that speak the USB HID Physical Interface Device class.

- `usages`: the HID usages by name. `items`, `layout`, `descriptor`: a report descriptor as reports and fields.
  `report`: the bytes of a report from values and back. `families`: what no descriptor says.
- `transport`: what every way to a stick offers: `usb_transport` (libusb, with `usb_listing`) and `hidraw`. `finding`:
  which sticks there are; `remedies`: what to do if one cannot be opened; `reattaching`: how the kernel gets it back.
- `session`: the conversation that sets a stick up. `forces`: what is sent of a force, and when. `streaming`: threads.
- `parameters`, `parameter_tables`: the file that calibrating makes. `settings`: what a person can choose.
- `trial`: a small push, where the firmware has changed.
- `opening`, `kernels`, `device`: the device itself, and what it computes in a tick.
"""
