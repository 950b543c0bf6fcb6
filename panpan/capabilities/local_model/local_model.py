"""What the `local` commands work with: the embedded model on this machine, and whether somebody can be asked."""

import os
import sys
from collections.abc import Callable, Sequence
from typing import Self

import click

from panpan.capabilities.local_model.fetching import Source
from panpan.capabilities.local_model.machine import require_machine
from panpan.capabilities.local_model.setup import usual_sources
from panpan.capabilities.local_model.weight_store import WeightStore, embedded_store
from panpan.errors import PanpanError
from panpan.types.dataclass import dataclass


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
