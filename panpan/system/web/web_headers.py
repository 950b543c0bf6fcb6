"""The headers of an answer."""

from collections.abc import Iterable, Iterator, Mapping


class WebHeaders(Mapping[str, str]):
    """Headers by name, whatever its case; those of one name are one, with commas between (RFC 9110, section 5.3).

    Args:
        pairs: As they came.
    """

    def __init__(self, pairs: Iterable[tuple[bytes, bytes]]) -> None:
        self._values: dict[str, str] = {}
        for raw_name, raw_value in pairs:
            name, value = raw_name.decode("ascii").lower(), raw_value.decode("latin-1")
            self._values[name] = f"{self._values[name]}, {value}" if name in self._values else value

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)
