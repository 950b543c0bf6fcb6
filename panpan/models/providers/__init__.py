"""The providers, one a file: each turns a request into its own wire format, and the reply back into events."""
