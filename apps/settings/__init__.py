"""Settings of a session: validated tables from files and the command line, models, and sliders."""
