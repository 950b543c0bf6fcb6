"""Tools for tasks that go on in the background."""
