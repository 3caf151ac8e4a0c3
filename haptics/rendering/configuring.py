"""A kernel that replaces what the program of a rendering is, between two ticks."""

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
    """Replace what the program is by `parameters`, a record of dtype `PARAMETERS`; where it is stays as it is.

    Parameters from another process bring no addresses, of the step and of a custom law: those in force are kept. Those
    with another number of the program are of a new one, which begins at the next good sample. The rendering's (1,)
    record and the parameters are given in words of 8 bytes, too.
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
