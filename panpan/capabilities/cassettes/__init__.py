"""Cassettes: conversations that are recorded with the model's stream, and played again without the model."""
