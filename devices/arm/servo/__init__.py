"""Servo laws of the arm: from commanded joint angles to motor torques, or to references for a drive that has its own.

==============  ==================================================================================================
`pid`           stiff control of each joint by itself, with an integrator
`flatness`      feed-forward of the elastic joint and feedback of what the motor should do (Weigand et al. 2020, (20))
`rigid`         feed-forward of the rigid joint, (27)
`linearising`   the inverse model at the measured state (12) to (15)
`fractional`    a derivative of any order of the joint's error (Machado et al. 2002, (7))
`sliding-mode`  `pid` with a bounded torque, which comes back slowly once it was at it (Kikuuwe et al. 2010)
==============  ==================================================================================================

- `settings`: which law, and its numbers. `servo`: the law of both joints of an arm as a record; `references`: the same
  for motors that control their position themselves.
- `gains`: gains from a bandwidth, and whether the sampled joint is stable under them.
- `mechanism`, `linear`, `sliding`: servo and arm as a linear system, and the virtual mass under which a sliding contact
  shakes it; `driven`: the same of an arm whose motors a drive controls.
- `proxy`: the proxy and the saturation of the last of them.
- `chain`: a command of piecewise constant speed made smooth. `kernels`: a step of the servo. `rest`: what keeps a joint
  from hunting while its reference rests.
"""
