"""ODrive v3.6 with firmware 0.5.6, emulated packet by packet, with simulated motors.

    backend = EmulatedOdriveBackend(EmulatedOdrive())
    stage = OdriveStage(backend=backend)

- `axis`: control iterations and properties of an axis, and the load of the motors.
- `endpoints`: table of endpoints. `firmware`: packets in and out. `text`: lines in and out, at its serial port.
- `board`: the drive on the bus, its endpoints, and the backend for pyusb. `can`: frames on a CAN bus.
- `server`: the drive in a separate process. `remote`: its client side. `packets`: the protocol between both.
"""
