"""Settings, where they come from and in which order, where files live, and what is known of models."""
