"""The folder of a campaign: its records, its leases, and the names of what is in it."""
