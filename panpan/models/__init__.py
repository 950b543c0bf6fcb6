"""Models: the client, the providers behind it, retries and prices. Knows no tools and no faces."""
