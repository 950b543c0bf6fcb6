"""Tools of the web: search and fetch; all text that comes from there is data."""
