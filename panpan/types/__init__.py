"""The vocabulary: data and Protocols that every layer shares. No input or output happens here."""
