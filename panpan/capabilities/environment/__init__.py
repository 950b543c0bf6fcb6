"""What a Python environment stands on, layer by layer, and the first layer that is broken."""
