"""The engine: trials and blocks, live and without a clock; sessions that may be killed and are taken up again."""
