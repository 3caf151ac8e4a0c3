"""Networks: masses, springs, dampers and frictional contacts, solved as one system; see `network`."""
