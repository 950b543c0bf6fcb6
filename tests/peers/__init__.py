"""panpan's clients against a server that nobody here wrote, the one that runs the embedded model: `make test-peers`.

The files are not named `test_…`, so that the tests of a change do not run them: they fetch a model.
"""
