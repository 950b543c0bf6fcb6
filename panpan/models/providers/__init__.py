"""The providers, one per file: each encodes requests in its own wire format, and turns replies back into events."""
