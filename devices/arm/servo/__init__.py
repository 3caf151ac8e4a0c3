"""Servo laws of the arm: from commanded joint angles to motor torques or drive references.

==============  ==================================================================================================
`pid`           stiff independent control of each joint, with an integrator
`flatness`      feed-forward of the elastic joint, feedback towards the motor reference (Weigand et al. 2020, (20))
`rigid`         feed-forward of the rigid joint, (27)
`linearising`   the inverse model at the measured state (12) to (15)
`fractional`    a derivative of any order of the joint's error (Machado et al. 2002, (7))
`sliding-mode`  `pid` with a bounded torque, which recovers slowly from saturation (Kikuuwe et al. 2010)
==============  ==================================================================================================

- `settings`: selection of the law, and its parameters.
- `servo`: gains from a bandwidth and stability of the sampled joint with them; the law of both joints of an arm as a
  record, and the counterpart for motors that control their position themselves.
- `kernels`: references of joints and motors, with smoothing of a command of piecewise constant speed, and a step of the
  servo. `fractional`: derivatives of any order.
- `linear`: arm, hand and servo or drive as a linear system, and the virtual mass below which a sliding contact
  destabilizes it.
"""
