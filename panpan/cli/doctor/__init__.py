"""`panpan doctor`: checks of this machine."""
