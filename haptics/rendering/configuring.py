"""Kernel that replaces the program of a rendering between two ticks."""

from __future__ import annotations

from typing import Any

import numpy as np

from haptics.elements.kernels import PARAMETER_FIELDS
from haptics.friction.sliding_kernels import LAW
from haptics.jit import kernel
from haptics.records import Rows
from haptics.rendering.kernels import CORE
from haptics.rendering.scene_kernels import NOWHERE

_WORDS = np.dtype(PARAMETER_FIELDS).itemsize // 8
_STEP = 0
_ADDRESS = int(CORE.fields["law"][1] + LAW.fields["address"][1]) // 8  # type: ignore[index]


@kernel
def configure(core: Rows, core_words: Any, parameters: Any) -> None:
    """Replace the parameters of the program, keeping its state.

    `parameters` is a record of dtype `PARAMETERS`. Parameters from another process contain no addresses (of the step
    and of a custom law); the present addresses are kept. A different program number means a new program, whose state is
    reset at the next good sample. The kernel gets `parameters` as 8-byte words, and `core_words` is `core` in the same
    form.
    """
    s = core[0]
    program, changed = s.program, False
    for i in range(_WORDS):
        if i in (_STEP, _ADDRESS) and parameters[i] == 0:
            continue
        changed = changed or core_words[i] != parameters[i]
        core_words[i] = parameters[i]
    if changed:
        s.changed = 1
    if s.program != program:
        s.fresh = 1
    if s.scene.look_up == 0:
        s.region = NOWHERE
