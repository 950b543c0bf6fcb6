"""The campaign as the user wrote it: read, checked, trusted, and expanded to its tasks."""
