"""Public names that are loaded when they are first used, so that importing a package costs nothing."""

TYPE_CHECKING = False  # type checkers know this name; importing `typing` takes milliseconds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def loader(package: str, place_of: "Mapping[str, str]") -> "Callable[[str], object]":
    """Return the `__getattr__` of a package whose public names are defined in other modules.

    Args:
        package: The package's name, for the error of a name that it does not have.
        place_of: The module of each name.
    """

    def load(name: str) -> object:
        if name not in place_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        from importlib import import_module

        return getattr(import_module(place_of[name]), name)

    return load
