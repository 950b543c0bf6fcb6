"""What hooks in around the loop, one feature a file or folder."""
