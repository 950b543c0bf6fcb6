"""Snapshots: what was in the workspace before and after the model changed it, and the way back."""
