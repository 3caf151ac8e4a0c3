"""Settings of a session: from files and the command line to checked tables, models and sliders."""
