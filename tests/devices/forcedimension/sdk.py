"""The maker's library in Python, for tests in virtual time: its functions, with results that a test sets."""

WITHOUT_EFFECT = {
    "dhdSetGravityCompensation", "dhdSetEffectorMass", "dhdConfigLinearVelocity", "drdOpenID", "drdStop",
}  # fmt: skip


class FakeDevice:
    def __init__(self, serial=1234, kind=33, initialised=True):
        self.serial, self.kind = serial, kind
        self.initialised = initialised
        self.opened, self.forces, self.brakes = False, False, True
        self.position, self.velocity, self.force = (0.01, 0.02, 0.03), (0.1, 0.2, 0.3), None
        self.cause = 0
        self.powered = self.connected = True
        self.arms_after = 0


class FakeSdk:
    """Library with the functions that the driver calls.

    `results` replaces the result of a function by its name; negative ones fail. `calls` lists all calls.
    """

    def __init__(self, *devices):
        self.devices = list(devices) or [FakeDevice()]
        self.results, self.calls = {}, []
        self.expert = False

    def __getattr__(self, name):
        if name not in WITHOUT_EFFECT and not hasattr(type(self), f"_{name}"):
            raise AttributeError(name)

        def call(*arguments):
            self.calls.append((name, *arguments))
            found = 0 if name in WITHOUT_EFFECT else getattr(self, f"_{name}")(*arguments)
            return self.results.get(name, found)

        return call

    def names(self):
        return [name for name, *_ in self.calls]

    def _dhdErrorGetLast(self):
        return 2

    def _dhdErrorGetLastStr(self):
        return b"communication error"

    def _dhdGetSDKVersion(self, *parts):
        for part, value in zip(parts, (3, 14, 0, 1), strict=True):
            part.value = value

    def _dhdGetDeviceCount(self):
        return len(self.devices)

    def _dhdOpenID(self, index):
        if self.devices[index].opened:
            return -1
        self.devices[index].opened = True
        return index

    def _dhdClose(self, index):
        self.devices[index].opened = False
        return 0

    def _dhdGetSerialNumber(self, number, index):
        number.value = self.devices[index].serial
        return 0

    def _dhdGetSystemName(self, index):
        return b"omega.3"

    def _dhdGetSystemType(self, index):
        return self.devices[index].kind

    def _dhdGetVersion(self, number, index):
        number.value = 2.5
        return 0

    def _dhdGetStatus(self, status, index):
        one = self.devices[index]
        status[0], status[1], status[3], status[5] = one.powered, one.connected, not one.initialised, one.forces
        status[14] = one.cause
        return 0

    def _dhdGetPosition(self, x, y, z, index):
        x.value, y.value, z.value = self.devices[index].position
        return 0

    def _dhdGetLinearVelocity(self, x, y, z, index):
        x.value, y.value, z.value = self.devices[index].velocity
        return 0

    def _dhdSetForce(self, x, y, z, index):
        self.devices[index].force = (x, y, z)
        return 0

    def _dhdEnableForce(self, on, index):
        one = self.devices[index]
        one.arms_after -= on
        one.forces = on and one.arms_after < 0
        return 0

    def _dhdSetBrakes(self, on, index):
        self.devices[index].brakes = on
        return 0

    def _dhdGetButtonMask(self, index):
        return 5

    def _dhdSetOutput(self, output, index):
        self.devices[index].output = output
        return 0 if self.devices[index].kind in (63, 104, 105) else -1

    def _dhdGetComFreq(self, index):
        return 2.0

    def _dhdEnableExpertMode(self):
        self.expert = True
        return 0

    def _dhdDisableExpertMode(self):
        self.expert = False
        return 0

    def _dhdSetWatchdog(self, value, index):
        self.watchdog = value
        return 0 if self.expert else -1

    def _dhdGetWatchdog(self, number, index):
        number.value = self.watchdog
        return 0

    def _dhdSetVelocityThreshold(self, value, index):
        self.threshold = value
        return 0 if self.expert else -1

    def _dhdGetVelocityThreshold(self, number, index):
        number.value = getattr(self, "threshold", 3)
        return 0

    def _dhdSetMaxForce(self, value, index):
        self.max_force = value
        return 0

    def _dhdGetMaxForce(self, index):
        return self.max_force

    def _drdIsInitialized(self, index):
        return self.devices[index].initialised

    def _drdAutoInit(self, index):
        self.devices[index].initialised = True
        return 0
