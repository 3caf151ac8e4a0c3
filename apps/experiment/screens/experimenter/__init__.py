"""The experimenter's screen: a window of Qt, in a process of its own."""
