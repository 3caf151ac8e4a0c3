"""Networks of masses, springs, dampers and frictional contacts as one system; see `network`."""
