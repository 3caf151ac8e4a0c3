r"""Proxy-based sliding mode control as a kernel: a PID control whose torque is bounded, and that comes back slowly.

A plain PID control whose torque saturates stores what it could not do: when a blocked joint is freed it shoots over
its reference. Kikuuwe, Yasukouchi, Fujimoto and Yamamoto (T-RO 26(4), 2010) put a massless proxy between reference and
joint. The PID control holds the joint to the proxy, and a sliding mode control the proxy to the reference. Here
:math:`d` is the error (reference less joint), :math:`x` how far the proxy is ahead of the joint, :math:`w = x - d` how
far it is ahead of the reference. With the bound F and a time constant H the law is the inclusion

.. math::
    \tau = K x + B \dot x + L \int x\,dt + \tau_L \in F\,\mathrm{Sgn}(-w - H \dot w) \qquad (*)

where :math:`\tau_L` is the load that is known beforehand. Inside the bound :math:`w + H \dot w = 0`: the proxy comes
to the reference exponentially, whatever the joint is like, and never beyond it. Once it is there :math:`x = d`, which
is the PID control itself.

Sampled by the implicit Euler method, which the elements of this project have of friction (Kikuuwe et al. 2006, (16) to
(25)), everything on the right of (*) is taken at the end of the step, the torque too. With the filtered speed of the
PID control, :math:`\dot x_k = \dot x_{k-1} + \varphi ((x_k - x_{k-1})/T - \dot x_{k-1})`, the left side is affine in
:math:`x_k`, with the slope :math:`C = K + \varphi B/T + L T > 0`, and the argument on the right falls in it,

.. math::
    -w_k - \frac{H}{T} (w_k - w_{k-1}) = -\frac{T + H}{T} (w_k - \rho w_{k-1}) = \frac{T + H}{T} (x^* - x_k),
    \qquad \rho = \frac{H}{T + H}, \quad x^* = d_k + \rho w_{k-1}.

With :math:`\tau^*` for the left side at :math:`x^*`, so that :math:`\tau_k - \tau^* = C (x_k - x^*)`, the inclusion is
:math:`\tau_k \in F\,\mathrm{Sgn}(\tau^* - \tau_k)`. This has exactly one solution, which is that of a rigid body on
dry friction in model A, a saturation:

.. math::
    \tau_k = \mathrm{sat}_F(\tau^*), \qquad x_k = x^* + (\tau_k - \tau^*)/C .

No speed of the reference or of the joint is differenced: :math:`w_k = \rho w_{k-1}` inside the bound. The integrator
adds up :math:`x_k`, which is what the bounded torque belongs to: it cannot wind up.

That set-valued controls are sampled without chatter in this way is the subject of Brogliato and Polyakov (Int. J.
Robust Nonlinear Control 31(9), 2021). Torque-bounded admittance control (Kikuuwe, T-RO 35(5), 2019) feeds the bound
back to the virtual mass besides; here the envelope holds the reference (`haptics.rendering.envelope`).
"""

from __future__ import annotations

from typing import Any

from haptics.jit import inlined_kernel


@inlined_kernel
def slide(s: Any, a: Any, motor: Any, resting: Any) -> Any:
    """Return the torque [N m] of the motor of joint `a`, whose error is `motor` [rad]; the integrator may be `resting`.

    All is done at the joint. The integrator hears the trim to the link, and the proportional part what was yielded to.
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
