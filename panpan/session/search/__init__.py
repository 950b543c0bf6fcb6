"""Full-text search over sessions."""
