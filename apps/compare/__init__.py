"""``haptics compare``: compare two recordings and find the first tick that differs."""
