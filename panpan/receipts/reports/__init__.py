"""Reports of test programs: how they come about, and the counts in them."""
