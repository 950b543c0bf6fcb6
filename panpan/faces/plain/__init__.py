"""The face for terminals that cannot move the cursor, line by line."""
