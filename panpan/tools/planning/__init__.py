"""Tools that settle what is to be done."""
