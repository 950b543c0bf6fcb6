"""Package managers: pip, conda, uv and pixi on one core."""
