"""Kernels of the hands: each fills its record with the state of the hand at a time.

Every kernel is a part ``(record, time, 0.0)`` (`haptics.jit`) whose record begins with `HAND_FIELDS`. Tables are
separate arrays; the record contains their address and number of rows.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from devices.virtual.hands.records import EDGE, PHASE, PIECE, ROW, WAVES, place_in
from haptics.jit import float_at, integer_at, kernel, merged_kernel, record_at

_BEGIN = np.dtype([("time", "<f8")])  # common first field of the rows of all tables: the time at which they begin [s]

_PHASE_SIZE, _ROW_SIZE, _PIECE_SIZE, _EDGE_SIZE = (row.itemsize for row in (PHASE, ROW, PIECE, EDGE))

_place_in = merged_kernel(place_in)


@merged_kernel
def _rows_begun(table: int, count: int, size: int, time: float) -> int:
    """Return the number of the `count` rows at `table`, of `size` bytes, that begin by `time` [s]."""
    low, high = 0, count
    while low < high:
        middle = (low + high) // 2
        if time < record_at(table + middle * size, _BEGIN).time:
            high = middle
        else:
            low = middle + 1
    return low


@merged_kernel
def _press(s: Any, time: float) -> None:
    """Set the buttons that are pressed at `time` [s]."""
    begun = _rows_begun(s.edges, s.edge_count, _EDGE_SIZE, time)
    s.buttons = record_at(s.edges + (begun - 1) * _EDGE_SIZE, EDGE).buttons if begun > 0 else 0


@merged_kernel
def _tremble(s: Any, time: float) -> None:
    """Set the force to the tremor."""
    x, y = 0.0, 0.0
    if s.trembles:
        for k in range(WAVES):
            wave = math.sin(s.waves[k, 0] * time + s.waves[k, 1])
            x += s.waves[k, 2] * wave
            y += s.waves[k, 3] * wave
    s.force[0], s.force[1] = x, y


# --- minimum jerk -----------------------------------------------------------------------------------------------------


@kernel
def minimum_jerk(s: Any, time: float, _: float) -> None:
    """Move along the tour, independently of the position of the handle."""
    _press(s, time)
    within = time % s.length
    phase = record_at(s.phases + (_rows_begun(s.phases, s.phase_count, _PHASE_SIZE, within) - 1) * _PHASE_SIZE, PHASE)
    elapsed = within - phase.start
    s.target[0], s.target[1] = _place_in(phase, elapsed)
    _tremble(s, time)
    relaxed = 0.0  # relaxation of a resting hand, 0 to 1
    if phase.rest:
        u = min(max(min(elapsed, phase.duration - elapsed) / phase.relaxing, 0.0), 1.0)
        relaxed = u * u * (3.0 - 2.0 * u)
    s.grip = 1.0 - (1.0 - s.rest_grip) * relaxed
    if relaxed > 0.0:
        size = relaxed * s.rest_force  # bound of the norm of the fluctuating force [N]
        x, y = 0.0, 0.0
        for k in range(len(s.wander)):
            wave = size * s.wander[k, 1] * math.sin(s.wander[k, 0] * time + s.wander[k, 2])
            x += wave * s.wander[k, 3]
            y += wave * s.wander[k, 4]
        s.force[0] += x
        s.force[1] += y


# --- scripted force ---------------------------------------------------------------------------------------------------


@kernel
def scripted_force(s: Any, time: float, _: float) -> None:
    """Push with the scripted force; without a grip the target has no effect."""
    _press(s, time)
    now = time % s.period if s.period > 0.0 else time
    after = _rows_begun(s.rows, s.row_count, _ROW_SIZE, now)
    row = record_at(s.rows + max(after - 1, 0) * _ROW_SIZE, ROW)
    s.force[0], s.force[1] = row.force[0], row.force[1]
    if 0 < after < s.row_count:
        following = record_at(s.rows + after * _ROW_SIZE, ROW)
        part = (now - row.time) / (following.time - row.time)
        for i in range(2):
            s.force[i] += part * (following.force[i] - row.force[i])


# --- recorded ---------------------------------------------------------------------------------------------------------


@kernel
def recorded(s: Any, time: float, _: float) -> None:
    """Follow the cubics of the path and then hold its end, independently of the position of the handle."""
    _press(s, time)
    _tremble(s, time)
    if time >= s.duration:
        s.target[0], s.target[1] = s.end[0], s.end[1]
        return
    piece = record_at(
        s.pieces + max(_rows_begun(s.pieces, s.piece_count, _PIECE_SIZE, time) - 1, 0) * _PIECE_SIZE, PIECE
    )
    u = (time - piece.begin) / (piece.end - piece.begin)
    for i in range(2):
        c0, c1, c2, c3 = piece.cubic[i, 0], piece.cubic[i, 1], piece.cubic[i, 2], piece.cubic[i, 3]
        s.target[i] = c0 + u * (c1 + u * (c2 + u * c3))


# --- mouse ------------------------------------------------------------------------------------------------------------


@merged_kernel
def _read_mouse(s: Any) -> None:
    """Copy the newest state published by the view; if it is being written, wait for the next call."""
    before = integer_at(s.lock)
    if before >> 1 == s.version:
        return
    x, y, engaged = float_at(s.shown), float_at(s.shown + 8), integer_at(s.shown + 16)  # fields of `HAND_TARGET`
    buttons, ease = integer_at(s.shown + 24), float_at(s.shown + 32)
    if before % 2 != 0 or integer_at(s.lock) != before:
        return
    s.version = before >> 1
    s.clicked = buttons
    s.ease = min(max(ease, 0.0), 1.0) if math.isfinite(ease) else 0.0
    s.engaged = 1 if engaged != 0 and math.isfinite(x + y) else 0
    if s.engaged:
        s.wanted[0] = min(max(x, s.workspace_min[0]), s.workspace_max[0])
        s.wanted[1] = min(max(y, s.workspace_min[1]), s.workspace_max[1])


@merged_kernel
def _follow(s: Any, elapsed: float) -> None:
    """Advance the critically damped filter exactly, for a constant mouse position."""
    rate = s.rate
    decay = math.exp(-rate * elapsed)
    for i in range(2):
        x, v, w = s.target[i], s.velocity[i], s.wanted[i]
        c = v + rate * (x - w)
        s.target[i] = w + (x - w + c * elapsed) * decay
        s.velocity[i] = (v - rate * c * elapsed) * decay


@kernel
def mouse(s: Any, time: float, _: float) -> None:
    """Follow the mouse; while it is not engaged, move with the handle."""
    _read_mouse(s)
    _press(s, time)
    s.buttons |= s.clicked
    elapsed = time - s.time
    s.time = time
    if s.engaged:
        _follow(s, elapsed)
        _tremble(s, time)
        s.grip = 1.0 - s.ease
        return
    for i in range(2):
        s.target[i], s.velocity[i], s.force[i] = s.handle[i], 0.0, 0.0
    s.grip = 0.0
