"""Structured output: the answer of a turn as JSON that fits a schema."""
