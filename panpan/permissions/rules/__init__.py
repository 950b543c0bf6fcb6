"""Permission rules: how they are written, what they speak of, and which of them "always" saves."""
