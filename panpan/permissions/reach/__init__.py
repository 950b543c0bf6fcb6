"""What a call reaches on disk: the places that it names, and those that it comes to without naming them."""
