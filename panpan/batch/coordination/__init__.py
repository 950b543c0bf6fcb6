"""The run of a campaign: which attempt begins when and where, and what it may spend."""
