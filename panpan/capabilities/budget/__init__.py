"""The budget as a feature: what the model is told when it is nearly spent."""
