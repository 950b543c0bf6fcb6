"""Dask as panpan runs it: quick to notice a host that is gone, without HTTP servers, with its log in a file.

The rule: no port is open without TLS, so schedulers and workers have no HTTP server.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from logging.handlers import RotatingFileHandler
from pathlib import Path
from typing import Any

from distributed import Scheduler, Worker

SETTINGS = {
    "distributed.comm.timeouts.connect": "10s",
    "distributed.comm.timeouts.tcp": "15s",
    "distributed.scheduler.worker-ttl": "20s",  # a host that is gone without a word is given up after this
    "distributed.scheduler.allowed-failures": 5,  # workers that may die with an attempt before it is given up
}
"""Settings of Dask in all processes that panpan starts."""

_LOG_BYTES = 1_000_000


class QuietScheduler(Scheduler):
    """A scheduler without an HTTP server."""

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        """Start none."""


class QuietWorker(Worker):
    """A worker without an HTTP server."""

    def start_http_server(self, *args: Any, **kwargs: Any) -> None:
        """Start none."""


@contextmanager
def log_in(path: Path) -> Iterator[None]:
    """Have Dask's warnings of this process in a file, since the terminal belongs to the campaign."""
    handler = RotatingFileHandler(path, maxBytes=_LOG_BYTES, backupCount=1, encoding="utf-8", delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(name)s %(message)s"))
    handler.setLevel(logging.WARNING)
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] in ("distributed", "tornado")]
    loggers = [logger for logger in map(logging.getLogger, ["distributed", *names]) if logger.handlers]
    before = {logger: list(logger.handlers) for logger in loggers}
    for logger in loggers:
        logger.handlers[:] = [handler]
    try:
        yield
    finally:
        for logger, handlers in before.items():
            logger.handlers[:] = handlers
        handler.close()
