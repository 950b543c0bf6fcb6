"""What the `local` commands work with: the embedded model on this machine, and whether somebody can be asked."""

import os
import platform
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import click

from panpan.errors import ConfigError, PanpanError
from panpan.llm.embedded.fetching import Source
from panpan.llm.embedded.server import require_runtime
from panpan.llm.embedded.setup import usual_sources
from panpan.llm.embedded.weight_store import WeightStore, embedded_store

_CPU_FILE = Path("/proc/cpuinfo")


def require_machine(machine: str | None = None, cpu_file: Path = _CPU_FILE) -> None:
    """Check that this machine can run the embedded model.

    Args:
        machine: Kind of processor, as `platform.machine` tells it.
        cpu_file: Where Linux tells what the processor can do; where it is missing, nothing is known against it.

    Raises:
        ConfigError: The runtime is not installed, or the processor lacks what the runtime needs.
    """
    if (machine or platform.machine()) in ("x86_64", "AMD64", "i386", "i686"):
        try:
            told = cpu_file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            told = ""
        flags = next((line.split() for line in told.splitlines() if line.startswith("flags")), None)
        if flags is not None and "avx2" not in flags:
            raise ConfigError("the embedded model does not run on this processor: it has no AVX2")
    require_runtime()


@dataclass(frozen=True, slots=True)
class LocalModel:
    """The embedded model, as the commands see it."""

    store: WeightStore
    sources: Sequence[Source]
    is_attended: bool
    """Whether somebody is there to be asked."""
    require_machine: Callable[[], None] = require_machine

    @classmethod
    def of(cls, ctx: click.Context) -> Self:
        """Return what the context was given, else what is on this machine."""
        return ctx.find_object(cls) or cls.here()

    @classmethod
    def here(cls) -> Self:
        """Return what is on this machine."""
        store = embedded_store(os.environ)
        is_attended = sys.stdin.isatty() and sys.stdout.isatty()
        return cls(store, usual_sources(store, os.environ), is_attended)

    @property
    def machine_fault(self) -> str:
        """What keeps the model from running here; empty where nothing does."""
        try:
            self.require_machine()
        except PanpanError as exc:
            return str(exc)
        return ""
