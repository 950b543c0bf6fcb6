"""Output styles: how the model speaks, whatever it does. See docs/output-styles.md."""
