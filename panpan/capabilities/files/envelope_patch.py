"""Reading patches that stand between `*** Begin Patch` and `*** End Patch`.

A patch without its last line is refused: it may have been cut on its way.
"""

from panpan.capabilities.files.patch_model import FilePatch, Hunk, HunkDraft
from panpan.errors import ToolError

BEGIN = "*** Begin Patch"
_END = "*** End Patch"
_ADD, _UPDATE, _DELETE = "*** Add File:", "*** Update File:", "*** Delete File:"
_MOVE, _END_OF_FILE = "*** Move to:", "*** End of File"
_FILE_HEADERS = (_ADD, _UPDATE, _DELETE)


def parse_envelope_patch(text: str) -> list[FilePatch]:
    """Return what the patch asks for.

    Raises:
        ToolError: It is not whole, or a line is not what the format has there.
    """
    return list(_EnvelopeParser(text).files())


class _EnvelopeParser:
    def __init__(self, text: str) -> None:
        self._lines = text.strip("\r\n\t ").split("\n")
        if all(line.endswith("\r") for line in self._lines[:-1]):  # how it travelled, not what it says
            self._lines = [line.removesuffix("\r") for line in self._lines]
        if self._lines[-1].strip() != _END:
            raise ToolError(f'the patch does not end with "{_END}", so it may be cut; send it whole')
        self._at = 1

    def files(self) -> list[FilePatch]:
        found = []
        while not self._is_at_end():
            line = self._take()
            if line.strip():
                found.append(self._file(line))
        return found

    def _take(self) -> str:
        line = self._lines[self._at]
        self._at += 1
        return line

    def _peek(self) -> str:
        return self._lines[self._at]

    def _is_at_header(self) -> bool:
        """Return whether a file begins here, or something that this format does not have."""
        line = self._peek()
        return self._is_at_end() or (line.startswith("*** ") and not line.startswith((_MOVE, _END_OF_FILE)))

    def _is_at_end(self) -> bool:
        return self._at >= len(self._lines) - 1

    def _wrong(self, expected: str) -> ToolError:
        return ToolError(f"line {self._at} of the patch is {self._lines[self._at - 1][:80]!r}; {expected}")

    def _file(self, header: str) -> FilePatch:
        prefix = next((prefix for prefix in _FILE_HEADERS if header.startswith(prefix)), None)
        if prefix is None:
            raise self._wrong(f'expected "{_ADD} PATH", "{_UPDATE} PATH" or "{_DELETE} PATH"')
        path = header.removeprefix(prefix).strip()
        if not path:
            raise self._wrong("the path is missing")
        if prefix == _ADD:
            return FilePatch("add", path, self._added_lines())
        if prefix == _DELETE:
            return FilePatch("delete", path)
        return self._update(path)

    def _added_lines(self) -> tuple[Hunk, ...]:
        draft = HunkDraft(self._at + 1)
        while not self._is_at_header():
            line = self._take()
            if line.strip() and not line.startswith("+"):
                raise self._wrong('each line of a new file begins with "+"')
            draft.add(line if line.strip() else "")
        return (draft.finished(),) if draft.lines else ()

    def _update(self, path: str) -> FilePatch:
        move_to = None
        if not self._is_at_header() and self._peek().startswith(_MOVE):
            move_to = self._take().removeprefix(_MOVE).strip()
            if not move_to:
                raise self._wrong("the path to move to is missing")
        hunks = []
        while not self._is_at_header():
            if not self._peek().strip():
                self._at += 1
                continue
            hunks.append(self._hunk())
        if not hunks and move_to is None:
            raise self._wrong(f"the update of {path} has no lines that change")
        return FilePatch("update", path, tuple(hunks), move_to)

    def _hunk(self) -> Hunk:
        draft = HunkDraft(self._at + 1)
        while not self._is_at_header() and self._peek().startswith("@@"):
            draft.read_header(self._take())
        while not self._is_at_header():
            line = self._peek()
            if line.rstrip() == _END_OF_FILE:
                self._at += 1
                draft.is_at_end = True
                break
            if line.startswith("@@"):
                break
            self._at += 1
            if not draft.add(line):
                raise self._wrong('each line of a hunk begins with " ", "-" or "+", and a new hunk with "@@"')
        return draft.finished()
