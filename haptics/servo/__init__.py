"""The servo: loop, real-time scheduling, process, and communication with the application.

Read `servo` first: the class `Servo` runs a program on a device. `kernels` has the steps of a tick and the compiled
loop. `process` runs the servo in a separate process, which `standby` can start in advance; `run` is a recorded run in
such a process. `control` carries settings and requests, `realtime` the requests to the operating system.
`offline` runs the same loop in simulated time.
"""
