"""Makes the conversation that a model is sent shorter, so that it fits the context window; see docs/adr."""
