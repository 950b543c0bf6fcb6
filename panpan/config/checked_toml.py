"""TOML files that people write, checked against a model. Errors name the line, the key and the correction."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self, TypeVar, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from panpan.config.faults import fault, first_of, parse_text, suggestion
from panpan.config.keys import KeyPath, dotted, item_lines, key_lines
from panpan.errors import ConfigError
from panpan.types.dataclass import dataclass

Checked = TypeVar("Checked", bound=BaseModel)


def _no_sentence(path: KeyPath, key: str, error: ErrorDetails) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class TomlText:
    """Text of a file, with its name for errors."""

    name: str
    text: str

    @classmethod
    def decoded(cls, name: str, data: bytes) -> Self:
        """Return the text of a file.

        Raises:
            ConfigError: It is not UTF-8.
        """
        try:
            return cls(name, data.decode("utf-8-sig"))
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise ConfigError(f"{name}:{line}: is not UTF-8; save the file as UTF-8") from error

    def checked(
        self, model: type[Checked], sentence: Callable[[KeyPath, str, ErrorDetails], str] = _no_sentence
    ) -> Checked:
        """Return the file as a model has it.

        Args:
            model: The model, whose tables forbid unknown keys.
            sentence: Gets path, name and error of a wrong value. Returns a sentence that begins with the name, or an
                empty text for the usual one.

        Raises:
            ConfigError: It is not TOML, or a key or value is wrong.
        """
        values = parse_text(self.text, self.name)
        try:
            return model.model_validate(values)
        except ValidationError as error:
            raise ConfigError(self._sentence(model, error.errors(include_url=False), sentence)) from error

    def place(self, path: KeyPath, item: int | None = None) -> str:
        """Return `NAME:LINE` of a key, or of the nearest table above it.

        Args:
            path: The key.
            item: Number of the item, from 0, if the first part of the path is a list of tables.
        """
        try:
            lines = key_lines(self.text)
            heads = item_lines(self.text).get(path[:1], ()) if item is not None else ()
            if item is not None and item < len(heads):
                return f"{self.name}:{heads[item] + _offset(self._item(heads, item), path)}"
        except RecursionError:  # nested too deeply for the lines alone
            return self.name
        found = _nearest(lines, path)
        return self.name if found is None else f"{self.name}:{found}"

    def _item(self, heads: Sequence[int], item: int) -> str:
        """Return the lines from the head of an item to that of the next."""
        end = heads[item + 1] - 1 if item + 1 < len(heads) else None
        return "\n".join(self.text.split("\n")[heads[item] - 1 : end])

    def _sentence(
        self,
        model: type[BaseModel],
        errors: list[ErrorDetails],
        sentence: Callable[[KeyPath, str, ErrorDetails], str],
    ) -> str:
        first = first_of(errors)
        location = first["loc"]
        path = tuple(part for part in location if isinstance(part, str) and part != "[key]")
        item = location[1] if len(location) > 1 and isinstance(location[1], int) else None
        place = self.place(path, item)
        key = dotted(path)
        if item is not None:
            key = ": ".join(filter(None, (f"{path[0]} {item + 1}", dotted(path[1:]))))
        if first["type"] == "extra_forbidden":
            return f"{place}: there is no key {dotted(path)}{suggestion(path, tuple(_keys_of(model, (), path)))}"
        if special := sentence(path, key, first):
            return f"{place}: {special}"
        return f"{place}: {key} {fault(first, is_item=isinstance(location[-1], int) and item != location[-1])}"


def _nearest(lines: Mapping[KeyPath, int], path: KeyPath) -> int | None:
    return next((lines[path[:length]] for length in range(len(path), 0, -1) if path[:length] in lines), None)


def _offset(item: str, path: KeyPath) -> int:
    """Return the number of lines from the head of an item to a key in it; 0 for an item of `[{…}, {…}]`."""
    if not item.lstrip().startswith("[["):
        return 0
    return (_nearest(key_lines(item), path) or 1) - 1


def _keys_of(model: type[BaseModel], above: KeyPath, wanted: KeyPath) -> Iterator[KeyPath]:
    """Yield all keys that a table and those in it may have; tables of free names have those of `wanted`."""
    for name, field in model.model_fields.items():
        path = (*above, field.alias or name)
        yield path
        if get_origin(field.annotation) in _MAPPINGS and wanted[: len(path)] == path and len(wanted) > len(path):
            path = wanted[: len(path) + 1]
        for table in _tables_in(field.annotation):
            yield from _keys_of(table, path, wanted)


_MAPPINGS = (dict, get_origin(Mapping[str, str]))


def _tables_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for part in get_args(annotation):
        yield from _tables_in(part)
