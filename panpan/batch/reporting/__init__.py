"""The ranking of attempts, the pick of one, the figures and the report."""
