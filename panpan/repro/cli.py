"""`panpan repro` and `panpan reproduce`. Each command imports its needs when it is called."""
