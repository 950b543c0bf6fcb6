"""`dataclass` as the standard library has it, but quick to define: a tenth of the time.

The standard library writes and compiles up to eight methods for each class, though most are never called. With our
hundred and fifty classes at a start, this was a third of the time to the first request. Here all classes share the same
methods except `__init__`, which is compiled on first use.
"""

import dataclasses
from collections.abc import Callable, Mapping
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

T = TypeVar("T")


def quick_dataclass(
    *, frozen: bool = False, slots: bool = False, kw_only: bool = False
) -> Callable[[type[T]], type[T]]:
    """Return a decorator that makes a dataclass; the arguments mean what they mean in the standard library."""

    def decorator(cls: type[T]) -> type[T]:
        cls.__doc__ = cls.__doc__ or cls.__name__  # without one the standard library builds a signature for it
        made = dataclasses.dataclass(  # noqa: TID251
            init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
        )(cls)
        methods = {"__init__": _InitOnDemand(made, is_frozen=frozen), "__repr__": _repr, **_comparison(made)}
        if frozen:
            methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
            methods |= {"__getstate__": _getstate, "__setstate__": _setstate}  # copying must get past the refusal
        else:
            methods["__hash__"] = None  # a mutable object must not be a key
        for name, method in methods.items():
            if made.__dict__.get(name) is None:  # otherwise the class has its own
                setattr(made, name, method)
        return made

    return decorator


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: TID251
else:
    dataclass = quick_dataclass


class _InitOnDemand:
    """Placeholder for `__init__`, which compiles it on first use."""

    def __init__(self, cls: type, *, is_frozen: bool) -> None:
        self._cls = cls
        self._is_frozen = is_frozen

    def __get__(self, instance: object, owner: type) -> Any:
        init = _written_init(self._cls, is_frozen=self._is_frozen)
        self._cls.__init__ = init  # type: ignore[misc]
        return init.__get__(instance, owner)


def _written_init(cls: Any, *, is_frozen: bool) -> Any:
    """Return `__init__`, written for the fields of a class."""
    names: dict[str, object] = {"_set": object.__setattr__, "_not_given": object()}
    by_position, by_name = ["self"], list[str]()
    body = []
    for field in dataclasses.fields(cls):
        name = field.name
        parameter, value = name, name
        if field.default_factory is not dataclasses.MISSING:
            names[f"_make_{name}"] = field.default_factory
            parameter = f"{name}=_not_given"
            value = f"_make_{name}() if {name} is _not_given else {name}" if field.init else f"_make_{name}()"
        elif field.default is not dataclasses.MISSING:
            names[f"_default_{name}"] = field.default
            parameter = f"{name}=_default_{name}"
            value = name if field.init else f"_default_{name}"
        if field.init:
            (by_name if field.kw_only else by_position).append(parameter)
        elif value == name:
            continue  # without a value or default, the class sets it itself
        body.append(f"_set(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    parameters = [*by_position, *(["*", *by_name] if by_name else [])]
    exec("\n  ".join([f"def __init__({', '.join(parameters)}):", *(body or ["pass"])]), names)
    init: Any = names["__init__"]
    init.__module__, init.__qualname__ = cls.__module__, f"{cls.__qualname__}.__init__"
    return init


def _comparison(cls: Any) -> Mapping[str, Any]:
    """Return the methods that compare objects of a class by the values of their fields."""
    compared = [field.name for field in dataclasses.fields(cls) if field.compare]
    values: Callable[[object], object] = attrgetter(*compared) if compared else lambda _: ()

    def __eq__(self: object, other: object) -> bool:  # noqa: N807
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    def __hash__(self: object) -> int:  # noqa: N807
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


@recursive_repr()
def _repr(self: Any) -> str:
    shown = [f"{field.name}={getattr(self, field.name)!r}" for field in dataclasses.fields(self) if field.repr]
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse(self: object, name: str, value: object = None) -> NoReturn:
    raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")


def _getstate(self: Any) -> list[object]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[object]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
