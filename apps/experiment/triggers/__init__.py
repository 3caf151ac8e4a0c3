"""Triggers: codes for the recorder of an EEG or of physiology, sent outside the tick.

`ports` has the table ``triggers`` and the outputs, `process` the process that follows the ticks and sends, and
`session` the side of the experiment.
"""
