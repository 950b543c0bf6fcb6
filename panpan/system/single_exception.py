"""Errors come out of task groups as they went in, so that `except ProviderError` works outside of one."""

from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def unwrap_single_exception() -> Generator[None, None, None]:
    """Raise the exception inside a group that holds only one, as a task group makes of its body's error."""
    try:
        yield
    except BaseExceptionGroup as group:
        error: BaseException = group
        while isinstance(error, BaseExceptionGroup) and len(error.exceptions) == 1:
            error = error.exceptions[0]
        raise error from error.__cause__
