"""The servo: loop, real-time scheduling, process, and communication with the application.

`haptics.servo.servo` has the class for applications, `process` runs it in a separate process, which `standby` can start
in advance, and `offline` runs it in simulated time. `loop_kernels` has the compiled loop, `supervision` the checks in
every tick, and `lane` the transfer of settings.
"""
