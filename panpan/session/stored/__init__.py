"""The sessions that are kept: where they lie, finding one, listing and searching them."""
