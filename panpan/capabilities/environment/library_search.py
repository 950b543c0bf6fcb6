"""Where a shared library is found: in the folders that a binary names, in those of the machine, or in the environment.

The order is that of ld.so(8): DT_RPATH or DT_RUNPATH with `$ORIGIN`, LD_LIBRARY_PATH, the folders of ld.so.conf(5), the
usual ones. What lies elsewhere in the environment counts as found, too: packages such as PyTorch load their libraries
before those that need them are imported, and the loader does not look again for what is there.
"""

from collections.abc import Iterator, Mapping, Sequence

from panpan.capabilities.environment.machine_root import MachineRoot

_USUAL = ("/lib", "/usr/lib", "/lib64", "/usr/lib64", "/usr/local/lib")
_OF_WSL = "/usr/lib/wsl/lib"
"""Where Windows puts the driver's libraries."""
_MAX_CONFIGURED = 200


class LibrarySearch:
    """Finds shared libraries by the names that binaries need them by.

    Args:
        root: The machine.
        of_environment: Libraries that lie in the environment: names, each with where it lies.
        library_path: LD_LIBRARY_PATH, as it is written.
        of_interpreter: The folders that the interpreter itself is linked with, where its libraries are loaded from.
    """

    def __init__(
        self,
        root: MachineRoot,
        of_environment: Mapping[str, str],
        library_path: str = "",
        of_interpreter: Sequence[str] = (),
    ) -> None:
        self._root = root
        self._of_environment = of_environment
        named = (*library_path.split(":"), *of_interpreter)
        self._named = [folder for folder in named if folder.startswith("/")]
        self._of_machine = {name: place for folder in self._folders() for name, place in self._libraries_in(folder)}
        self._exists: dict[str, bool] = {}

    def find(self, name: str, *, of: str = "", search: tuple[str, ...] = ()) -> str:
        """Return where a library lies; empty where it is nowhere.

        Args:
            name: As it is needed, such as `libcudart.so.12`.
            of: The binary that needs it.
            search: The folders that this binary names.
        """
        for folder in (*with_origin(search, of), *self._named):
            if folder.startswith("/") and self._is_there(f"{folder}/{name}"):
                return f"{folder}/{name}"
        return self._of_machine.get(name) or self._of_environment.get(name, "")

    def all_named(self, start: str) -> Mapping[str, str]:
        """Return all libraries whose names begin so, of the environment and the machine: names, and where they lie."""
        both = {**self._of_machine, **self._of_environment}
        return {name: both[name] for name in sorted(both) if name.startswith(start)}

    def _is_there(self, path: str) -> bool:
        if path not in self._exists:
            self._exists[path] = self._root.exists(path)
        return self._exists[path]

    def _folders(self) -> Iterator[str]:
        """Yield the folders of the machine; what is looked at last counts most."""
        of_machines = [
            f"{top}/{name}" for top in ("/lib", "/usr/lib") for name in self._root.names(top) if "-linux-gnu" in name
        ]
        yield from reversed([*self._configured("/etc/ld.so.conf"), *of_machines, *_USUAL, _OF_WSL])

    def _libraries_in(self, folder: str) -> Iterator[tuple[str, str]]:
        return ((name, f"{folder}/{name}") for name in self._root.names(folder) if ".so" in name)

    def _configured(self, path: str) -> list[str]:
        """Return the folders of a file such as /etc/ld.so.conf, and of those that it includes from a folder beside."""
        folders: list[str] = []
        for line in (self._root.text(path, max_bytes=100_000) or "").splitlines():
            words = line.partition("#")[0].split()
            if words[:1] == ["include"] and len(words) == 2 and words[1].endswith("/*.conf"):
                beside = words[1].removesuffix("/*.conf")
                beside = beside if beside.startswith("/") else f"/etc/{beside}"
                for name in self._root.names(beside)[:_MAX_CONFIGURED]:
                    if name.endswith(".conf"):
                        text = self._root.text(f"{beside}/{name}", max_bytes=100_000) or ""
                        folders += [one.strip() for one in text.splitlines() if one.startswith("/")]
            elif words and words[0].startswith("/"):
                folders.append(words[0])
        return folders[:_MAX_CONFIGURED]


def with_origin(folders: Sequence[str], binary: str) -> list[str]:
    """Return folders as a binary names them, with the folder that it lies in for `$ORIGIN`."""
    origin = binary.rpartition("/")[0]
    return [folder.replace("$ORIGIN", origin).replace("${ORIGIN}", origin) for folder in folders]
