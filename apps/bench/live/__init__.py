"""Real-time benchmarks of the servo, the stage and the streams."""
