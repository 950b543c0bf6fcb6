"""Changes to files: planned, shown before they are allowed, written all or nothing."""
