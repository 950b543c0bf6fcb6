"""The journey from a repository or paper to a report and a kit."""
