"""Which law is in force, and where: its curve, and what a scene says of a place. No Qt."""
