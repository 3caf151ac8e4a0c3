r"""Kernel of proxy-based sliding mode control: PID with bounded torque and slow recovery.

A plain PID control with a saturated torque winds up: when a blocked joint is freed, it overshoots its reference.
Kikuuwe, Yasukouchi, Fujimoto and Yamamoto (T-RO 26(4), 2010) put a massless proxy between reference and
joint. The PID control holds the joint to the proxy, and a sliding mode control the proxy to the reference. Here
:math:`d` is the error (reference minus joint), :math:`x` is proxy minus joint, :math:`w = x - d` is proxy minus
reference. With the bound F and a time constant H the law is the inclusion

.. math::
    \tau = K x + B \dot x + L \int x\,dt + \tau_L \in F\,\mathrm{Sgn}(-w - H \dot w) \qquad (*)

where :math:`\tau_L` is the known load. Inside the bound :math:`w + H \dot w = 0`: the proxy converges to the reference
exponentially and without overshoot, independent of the joint. After convergence :math:`x = d`, which is the PID control
itself.

With the implicit Euler method, as in the friction elements of this project (Kikuuwe et al. 2006, (16) to (25)), all
terms on the right of (*) and the torque are evaluated at the end of the step. With the filtered speed of the
PID control, :math:`\dot x_k = \dot x_{k-1} + \varphi ((x_k - x_{k-1})/T - \dot x_{k-1})`, the left side is affine in
:math:`x_k`, with the slope :math:`C = K + \varphi B/T + L T > 0`, and the argument on the right decreases with it,

.. math::
    -w_k - \frac{H}{T} (w_k - w_{k-1}) = -\frac{T + H}{T} (w_k - \rho w_{k-1}) = \frac{T + H}{T} (x^* - x_k),
    \qquad \rho = \frac{H}{T + H}, \quad x^* = d_k + \rho w_{k-1}.

With :math:`\tau^*` for the left side at :math:`x^*`, so that :math:`\tau_k - \tau^* = C (x_k - x^*)`, the inclusion is
:math:`\tau_k \in F\,\mathrm{Sgn}(\tau^* - \tau_k)`. This has exactly one solution, a saturation, like a rigid body with
dry friction in model A:

.. math::
    \tau_k = \mathrm{sat}_F(\tau^*), \qquad x_k = x^* + (\tau_k - \tau^*)/C .

No speed of the reference or of the joint is differentiated: :math:`w_k = \rho w_{k-1}` inside the bound. The integrator
sums :math:`x_k`, which is consistent with the bounded torque: it cannot wind up.

Sampling of set-valued controls without chatter is the subject of Brogliato and Polyakov (Int. J. Robust Nonlinear
Control 31(9), 2021). Torque-bounded admittance control (Kikuuwe, T-RO 35(5), 2019) also feeds the bound back to the
virtual mass; here the safety envelope holds the reference (`haptics.rendering.envelope`).
"""

from __future__ import annotations

from typing import Any

from haptics.jit import inlined_kernel


@inlined_kernel
def slide(s: Any, a: Any, motor: Any, resting: Any) -> Any:
    """Return the motor torque [N m] of joint `a` at the error `motor` [rad].

    The integrator is held if `resting`.

    All quantities are seen at the joint. The integrator uses the trim towards the link, the proportional part the
    offset from yielding at rest.
    """
    c, u, T = a.control, a.control.joint.gear_ratio, s.period
    B = c.velocity_gain * u * u
    K, L, F = c.position_gain * B, 0.0 if resting else a.integral_gain, abs(u) * a.torque_limit
    share = s.filter if s.started else 0.0
    x = motor + s.resumption * a.ahead
    rate = a.motor_rate + share * ((x - a.motor_error) / T - a.motor_rate)
    integral = a.integral + T * L * (x + a.trim)
    tau = K * (x - a.offset) + B * rate + integral + a.wanted.load
    bounded = min(max(tau, -F), F)
    cut = (bounded - tau) / (K + share * B / T + T * L)
    a.motor_error, a.motor_rate = x + cut, rate + share * cut / T
    a.integral, a.ahead = integral + T * L * cut, x + cut - motor
    return bounded / u
