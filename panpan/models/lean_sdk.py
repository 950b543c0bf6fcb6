"""Imports the part of a vendor's SDK that sends requests, and not the thousands of modules that it brings with it.

Most of an SDK is a class for each kind of request and answer, which panpan neither builds nor reads. So its client is
loaded without them, from the installed files but under another name (`anthropic` as `_panpan_anthropic`), and with
placeholders for the two folders that hold those classes. The rule: the SDK's own name is never touched, so that
whoever imports it in the same process gets the real and whole package; and whatever is not as expected, while loading
or when the errors are tried, leads to the ordinary import.
"""

import logging
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Literal, TypeAlias

from panpan.types.dataclass import dataclass

log = logging.getLogger(__name__)

Sdk: TypeAlias = Literal["anthropic", "openai"]
"""The name of an SDK's package."""

_PREFIX = "_panpan_"
_LEFT_OUT = ("types", "resources")
"""Subpackages of an SDK that get placeholders: the classes of requests and answers, and the methods for each API."""

_TRIED_STATUSES = (400, 401, 403, 404, 413, 429, 500, 529)


@dataclass(frozen=True, slots=True)
class SdkClasses:
    """What is used of an SDK."""

    client_type: Any
    """The asynchronous client; only its constructor, `post` and `close` may be used."""
    network_type: Any
    """The network client that it makes for itself where it is given none."""
    error_type: type[Exception]
    """The root of the errors that it raises."""
    is_lean: bool
    """Whether the rest of the SDK was left out."""


def load_sdk(sdk: Sdk, *, client_name: str, error_name: str) -> SdkClasses:
    """Import what is needed of an SDK. Safe to call from any thread, since the import system does the locking.

    Args:
        sdk: Name of its package.
        client_name: Name of its asynchronous client.
        error_name: Name of the root of its errors.

    Raises:
        ImportError: It is not installed.
    """
    is_logging = bool(os.environ.get(f"{sdk.upper()}_LOG"))  # asks the whole SDK to log; its `__init__` sees to that
    if sdk not in sys.modules and not is_logging:
        try:
            return _lean(sdk, client_name, error_name)
        except Exception:  # another version of the SDK may be built in any other way
            log.debug("the import of %s cannot be shortened", sdk, exc_info=True)
            _forget(sdk)
    package = import_module(sdk)
    return SdkClasses(
        getattr(package, client_name), package.DefaultAsyncHttpxClient, getattr(package, error_name), is_lean=False
    )


def _lean(sdk: Sdk, client_name: str, error_name: str) -> SdkClasses:
    """Load the client's module under panpan's name for it, and try the errors that it makes."""
    if not any(isinstance(finder, _LeanFinder) and finder.sdk == sdk for finder in sys.meta_path):
        sys.meta_path.insert(0, _LeanFinder(sdk))
    client_type = getattr(import_module(f"{_PREFIX}{sdk}._client"), client_name)
    network_type = import_module(f"{_PREFIX}{sdk}._base_client").DefaultAsyncHttpxClient
    errors = import_module(f"{_PREFIX}{sdk}._exceptions")
    classes = SdkClasses(client_type, network_type, getattr(errors, error_name), is_lean=True)
    _try_errors(classes)
    return classes


def _forget(sdk: Sdk) -> None:
    """Take back what a failed attempt has left."""
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if not (isinstance(finder, _LeanFinder) and finder.sdk == sdk)
    ]
    for name in [name for name in sys.modules if f"{name}.".startswith(f"{_PREFIX}{sdk}.")]:
        del sys.modules[name]


def _try_errors(classes: SdkClasses) -> None:
    """Make an error of each usual status, for that is where a placeholder could come to light too late.

    Raises:
        Exception: The SDK does not make errors as expected.
    """
    import httpx2

    make = classes.client_type._make_status_error
    request = httpx2.Request("POST", "http://localhost/")
    body = {"type": "error", "error": {"type": "some_error", "message": "said", "details": {"error_code": "some_code"}}}
    for status in _TRIED_STATUSES:
        response = httpx2.Response(status, request=request, json=body)
        error: Any = make(None, "said", body=body, response=response)
        is_as_expected = error.status_code == status and error.response is response and error.body is not None
        if not (is_as_expected and isinstance(error, classes.error_type)):
            raise TypeError(f"the error for status {status} is {error!r}")


class _LeanFinder(MetaPathFinder, Loader):
    """Finds the modules of an SDK under panpan's name: its own files, or placeholders for what is left out.

    It stays in place, because an SDK also imports inside its functions.
    """

    def __init__(self, sdk: Sdk) -> None:
        self.sdk = sdk
        self._name = f"{_PREFIX}{sdk}"
        self._left_out = tuple(f"{self._name}.{folder}" for folder in _LEFT_OUT)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not fullname.startswith(self._name):
            return None
        if fullname == self._name:
            return self._package_spec()
        if f"{fullname}.".startswith(tuple(f"{folder}." for folder in self._left_out)):
            return ModuleSpec(fullname, self, is_package=True)
        return None  # a file of the SDK: found by its path, as always

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Placeholder(spec.name, self._name)

    def exec_module(self, module: ModuleType) -> None:
        pass

    def _package_spec(self) -> ModuleSpec | None:
        """Return a package that holds the SDK's files and does not run its `__init__`, which imports them all."""
        installed = find_spec(self.sdk)
        if installed is None:
            return None
        spec = ModuleSpec(self._name, None, is_package=True)
        spec.submodule_search_locations = installed.submodule_search_locations
        return spec


class _Placeholder(ModuleType):
    """Stands for a module that is left out: any name in it is a class with nothing in it.

    The SDKs derive their most special errors (such as one for a file that has expired) in the folder of types; a
    placeholder for such an error is a plain status error of the SDK, so that it can be raised and caught.
    """

    def __init__(self, name: str, package: str) -> None:
        super().__init__(name)
        self._package = package

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        bases: tuple[type, ...] = ()
        if name.endswith("Error"):
            bases = (sys.modules[f"{self._package}._exceptions"].APIStatusError,)
        placeholder = type(name, bases, {"__module__": self.__name__})
        setattr(self, name, placeholder)
        return placeholder
