"""Preparation of the daemon before it is asked: imports, and everything that is made at a first use.

The rule: nothing here depends on a user, a folder or a moment. Which variables are read meanwhile is recorded, and a
start is not served if they differ for it.
"""

import importlib
import os
import pkgutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Literal
from unittest.mock import patch

_NEEDED = (
    "panpan.cli.main",
    "panpan.cli.run_command",
    "panpan.cli.session_opening",
    "panpan.faces.headless.run",
    "panpan.faces.headless.output_formats",
    "panpan.cli_kit.stdin",
    "panpan.models.error_body",
    "panpan.models.joined_chunks",
    "panpan.models.providers.anthropic",
    "panpan.models.providers.openai_compatible",
    "anyio._backends._asyncio",
    "anyio._core._signals",
    "anyio._core._subprocesses",
    "concurrent.futures.thread",
    "encodings.utf_8_sig",
    "httpcore2",
    "importlib.readers",
    "tomllib",
    "tree_sitter",
    "tree_sitter_bash",
    "truststore",
)
"""Modules that a headless run needs, as far as functions import them."""
_WHOLE = (
    "panpan.capabilities",
    "panpan.editing",
    "panpan.python_environments",
    "panpan.shell_analysis",
    "panpan.system.sandbox",
)
"""Packages of which it may need any module."""
_RARE = ("cli", "doctor", "local_model")
"""Parts of the names of modules in these packages that it does not need."""

_SDKS: Sequence[tuple[Literal["anthropic", "openai"], str, str]] = (
    ("anthropic", "AsyncAnthropic", "AnthropicError"),
    ("openai", "AsyncOpenAI", "OpenAIError"),
)


def preload() -> Mapping[str, str | None]:
    """Import and prepare what a headless run needs, and return the variables that were read meanwhile."""
    sys.modules.setdefault("trio", None)  # type: ignore[arg-type]  # as panpan.cli.main does
    names, read = set[str](), os._Environ.__getitem__

    def noted(env: os._Environ[str], name: str) -> str:
        names.add(name)
        return read(env, name)

    with patch.object(os._Environ, "__getitem__", noted):
        for name in (*_NEEDED, *_modules_of_packages()):
            with suppress(ImportError):  # of an optional package
                importlib.import_module(name)
        from panpan.models.sdk_clients import load_sdk

        for sdk, client, error in _SDKS:
            load_sdk(sdk, client_name=client, error_name=error)
        _prepare()
    return {name: os.environ.get(name) for name in names}


def _modules_of_packages() -> Iterator[str]:
    for package in map(importlib.import_module, _WHOLE):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if set(_RARE).isdisjoint(module.name.split(".")):
                yield module.name


def _prepare() -> None:
    """Compile the patterns, schemas and initialisers that are otherwise compiled at their first use."""
    from pydantic import BaseModel

    from panpan.types.pattern import compile_late

    modules = [module for name, module in sys.modules.items() if name.startswith("panpan.")]
    for value in [value for module in modules for value in vars(module).values()]:
        if not isinstance(value, type):
            if type(value) is compile_late:
                _ = value.pattern
        elif issubclass(value, BaseModel) and value is not BaseModel:
            value.model_rebuild(raise_errors=False)
        else:
            _ = value.__init__  # type: ignore[misc]
