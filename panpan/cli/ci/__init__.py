"""`panpan ci`: reviews and fixes where strangers may write what the model reads, and nobody watches."""
