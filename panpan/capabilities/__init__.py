"""The features, a folder each. Each is a `Capability`, and none imports another."""
