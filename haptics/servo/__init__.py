"""The servo: the loop, its real-time scheduling, its process, and what passes between it and the application.

`haptics.servo.servo` is the class for one's own programs, `process` runs it in a process of its own, which `standby`
starts ahead of its job, `offline` without a clock. `loop_kernels` is the compiled loop, `supervision` what it watches,
`lane` how settings reach it.
"""
