"""Operations: what clients may ask of a session or a server, the same on every way to it."""
