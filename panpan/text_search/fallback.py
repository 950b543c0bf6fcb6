"""The search where ripgrep is missing: slower, with the same answers in the same form, as a process of its own.

The rule: what it prints for a request is what ripgrep prints, but for how a line is cut that is too long, and for where
a file is left that turns out to be binary late; and what only ripgrep's regular expressions can do is refused with exit
code 2 and a sentence.
"""

import os
import re
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from panpan.errors import ToolError
from panpan.system.files.globs import compile_glob
from panpan.system.files.read_file import listed_folder, read_regular_file, status_of
from panpan.text_search.engine import MAX_COLUMNS, SearchRequest
from panpan.text_search.file_filters import UNKNOWN_TYPE, IgnoreRules, folder_context, globs_of_type, rules_in
from panpan.types.dataclass import dataclass
from panpan.types.events import VERSION_CONTROL_FOLDERS

MAX_FILE_BYTES = 200_000_000
"""A larger file is not searched and counts as one that could not be read."""

_BINARY_PROBE_BYTES = 65536
"""A file with a NUL in its first bytes, as many as ripgrep looks at first, is binary and not searched."""

_UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")


def main(request_json: str) -> None:
    """Answer one request on standard output, and exit."""
    try:
        code = answer(SearchRequest.from_json(request_json), sys.stdout.buffer)
        sys.stdout.buffer.flush()
    except ToolError as exc:
        sys.stderr.write(f"{exc}\n")
        code = 2
    except BrokenPipeError:
        os._exit(2)
    sys.exit(code)


def answer(request: SearchRequest, out: BinaryIO) -> int:
    """Write the answer to `out` and return the exit code, as ripgrep's: 0 found, 1 nothing found, 2 trouble.

    Raises:
        ToolError: The pattern, type or a glob cannot be used.
    """
    search = _Search(request, out)
    found = search.run()
    return 2 if search.has_trouble else 0 if found else 1


@dataclass(slots=True)
class _Selection:
    wanted: list[re.Pattern[str]]
    """A file's name must match one of these; empty for all."""
    excluded: list[re.Pattern[str]]
    """Paths to leave out, relative to the folder of the search."""

    def takes_file(self, relative: str, name: str) -> bool:
        is_wanted = not self.wanted or any(regex.fullmatch(name) for regex in self.wanted)
        return is_wanted and not self.leaves_out(relative)

    def leaves_out(self, relative: str) -> bool:
        return any(regex.fullmatch(relative) for regex in self.excluded)


class _Search:
    def __init__(self, request: SearchRequest, out: BinaryIO) -> None:
        self.has_trouble = False
        self._request = request
        self._out = out
        self._folder = request.folder.rstrip("/")
        files, query = request.files, request.query
        globs = files.name_globs if files.file_type is None else globs_of_type(files.file_type)
        if files.file_type is not None and not globs:
            raise ToolError(f"{UNKNOWN_TYPE}: {files.file_type}")
        excluded = [compile_glob(glob.removesuffix("/")) for glob in (*VERSION_CONTROL_FOLDERS, *files.excluded)]
        self._selection = _Selection([compile_glob(glob) for glob in globs], excluded)
        self._regex = compile_pattern(query.pattern, ignore_case=query.ignore_case, is_multiline=query.is_multiline)

    def run(self) -> bool:
        """Print the answer and return True if there was any."""
        if self._request.answer == "listing":
            return self._list()
        files = [self._request.file] if self._request.file is not None else self._files()
        found = False
        for file in files:
            found = self._search_file(file) or found
        return found

    def _list(self) -> bool:
        newest_first = []
        for file in self._files():
            try:
                newest_first.append((-status_of(Path(f"{self._folder}/{file}")).st_mtime_ns, file))
            except OSError:
                continue
        newest_first.sort()
        for _, file in newest_first:
            self._print(f"./{file}\0")
        return bool(newest_first)

    def _files(self) -> Iterator[str]:
        above = folder_context(Path(self._request.folder)).rules if self._request.files.has_parent_rules else None
        waiting: list[tuple[str, IgnoreRules | None]] = [("", above)]
        while waiting:
            place, rules = waiting.pop()
            if place and not place.endswith("/"):
                yield place
                continue
            folder = f"{self._folder}/{place}".rstrip("/") or "/"
            own_rules = rules_in(folder, rules, is_in_repository=self._request.files.is_in_repository)
            waiting.extend((entry, own_rules) for entry in reversed(self._entries(folder, place, own_rules)))

    def _entries(self, folder: str, place: str, rules: IgnoreRules) -> list[str]:
        """Return what counts in one folder, sorted: files, and folders with a slash at their end."""
        try:
            with listed_folder(Path(folder)) as opened, os.scandir(opened) as scan:
                entries = sorted(scan, key=lambda entry: os.fsencode(entry.name))
                return [kept for entry in entries if (kept := self._kept(entry, folder, place, rules))]
        except OSError:
            self.has_trouble = True
            return []

    def _kept(self, entry: "os.DirEntry[str]", folder: str, place: str, rules: IgnoreRules) -> str:
        relative = place + entry.name
        is_folder = entry.is_dir(follow_symlinks=False)
        if is_folder:
            is_taken = not self._selection.leaves_out(relative)
        else:
            is_taken = entry.is_file(follow_symlinks=False) and self._selection.takes_file(relative, entry.name)
        if not is_taken or rules.is_ignored(f"{folder.rstrip('/')}/{entry.name}", is_folder=is_folder):
            return ""
        return f"{relative}/" if is_folder else relative

    def _search_file(self, file: str) -> bool:
        data = self._data_of(file)
        if data is None:
            return False
        is_named = self._request.file is not None
        is_binary = b"\0" in (data if is_named else data[:_BINARY_PROBE_BYTES]) and not data.startswith(_UTF_16_MARKS)
        if is_binary:
            return is_named and self._search_binary(file, data)
        found = self._search_text(file, _decoded(data))
        if found and self._request.answer == "lines" and b"\0" in data and not data.startswith(_UTF_16_MARKS):
            self._print(f"./{file}: binary file matches\n")
        return found

    def _data_of(self, file: str) -> bytes | None:
        try:
            return read_regular_file(Path(f"{self._folder}/{file}"), max_bytes=MAX_FILE_BYTES)
        except ToolError:
            self.has_trouble = True
            return None

    def _search_binary(self, file: str, data: bytes) -> bool:
        """Search a binary file, of which no line is ever shown."""
        text = data.replace(b"\0", b"\n").decode("utf-8", errors="surrogateescape")
        if self._request.answer != "lines":
            return self._search_text(file, text)
        found = self._regex.search(text) is not None
        if found:
            self._print(f"./{file}: binary file matches\n")
        return found

    def _search_text(self, file: str, text: str) -> bool:
        lines = text.split("\n")
        if lines[-1] == "":
            lines.pop()
        hits, count = self._hits_multiline(text) if self._request.query.is_multiline else self._hits(lines)
        if hits:
            self._print_file(file, lines, hits, count)
        return bool(hits)

    def _hits(self, lines: list[str]) -> tuple[set[int], int]:
        search = self._regex.search
        hits = {index for index, line in enumerate(lines) if search(line)}
        return hits, len(hits)

    def _hits_multiline(self, text: str) -> tuple[set[int], int]:
        """Return the indexes of the lines that matches touch, and the number of matches; those in one line are one."""
        hits: set[int] = set()
        count, line, at = 0, 0, 0
        for match in self._regex.finditer(text):
            if match.start() == len(text) and (not text or text.endswith("\n")):
                break  # after the last line
            line += text.count("\n", at, match.start())
            at = match.start()
            last = line + text.count("\n", at, max(at, match.end() - 1))
            count += line not in hits
            hits.update(range(line, last + 1))
        return hits, count

    def _print(self, text: str) -> None:
        self._out.write(text.encode("utf-8", errors="surrogateescape"))

    def _print_file(self, file: str, lines: list[str], hits: set[int], count: int) -> None:
        if self._request.answer == "files":
            self._print(f"./{file}\0")
        elif self._request.answer == "counts":
            self._print(f"./{file}\0{count}\n")
        else:
            shown, query = set(hits), self._request.query
            for hit in hits:
                shown.update(range(max(0, hit - query.before), min(len(lines), hit + query.after + 1)))
            for index in sorted(shown):
                separator = ":" if index in hits else "-"
                self._print(f"./{file}\0{index + 1}{separator}{lines[index][:MAX_COLUMNS]}\n")


def _decoded(data: bytes) -> str:
    """Return the text of a file as ripgrep sees it, with LF at line ends; up to a NUL in a file that is no UTF-16."""
    if data.startswith(_UTF_16_MARKS):
        text = data.decode("utf-16", errors="replace")
    else:
        text = data.partition(b"\0")[0].decode("utf-8", errors="surrogateescape").removeprefix("\ufeff")
    return text.replace("\r\n", "\n")


_POSIX_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}

_ESCAPES = {"z": r"\Z", "<": r"\b(?=\w)", ">": r"\b(?<=\w)", "a": r"\x07", "h": r"[\t ]"}
"""Escapes that have another name in Python, outside of brackets."""

_WORD_ENDS = {"start": r"\b(?=\w)", "end": r"\b(?<=\w)", "start-half": r"(?<!\w)", "end-half": r"(?!\w)"}


def compile_pattern(pattern: str, *, ignore_case: bool, is_multiline: bool) -> re.Pattern[str]:
    """Return `pattern` compiled for Python.

    Raises:
        ToolError: It is no regular expression, or one that Python cannot do.
    """
    flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0) | (re.DOTALL if is_multiline else 0)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # warnings about future meanings of a pattern
            return re.compile(_Translation(pattern).run(), flags)
    except (re.error, OverflowError, RecursionError, Warning) as exc:
        raise ToolError(str(exc)) from exc


class _Translation:
    def __init__(self, pattern: str) -> None:
        self._text = pattern
        self._at = 0
        self._out: list[str] = []
        self._closers: list[str] = []
        """Translations of the `)` of each open group."""

    def run(self) -> str:
        while self._at < len(self._text):
            character = self._text[self._at]
            if character == "\\":
                self._escape()
            elif character == "[":
                self._bracket()
            elif character == "(":
                self._group()
            else:
                if character == ")" and self._closers:
                    character = self._closers.pop()
                self._out.append(character)
                self._at += 1
        return "".join(self._out)

    def _take(self, regex: str) -> re.Match[str] | None:
        found = re.compile(regex).match(self._text, self._at)
        if found:
            self._at = found.end()
        return found

    def _escape(self) -> None:
        if found := self._take(r"\\b\{([a-z-]+)\}"):
            if found[1] not in _WORD_ENDS:
                raise ToolError(f"{found[0]} is not known")
            self._out.append(_WORD_ENDS[found[1]])
        elif not self._common_escape():
            name = self._text[self._at + 1 : self._at + 2]
            self._out.append(_ESCAPES.get(name, "\\" + name))
            self._at += 2

    def _common_escape(self) -> bool:
        if found := self._take(r"\\[xuU]\{([0-9A-Fa-f]{1,8})\}"):
            self._out.append(_character(found[1]))
        elif self._text.startswith(("\\p", "\\P"), self._at):
            raise ToolError("Unicode classes such as \\p{L} need ripgrep, which is not installed; name the characters")
        elif found := self._take(r"\\([-/\"'#&~%,:;=@_` !])"):
            self._out.append(re.escape(found[1]))
        else:
            return False
        return True

    def _bracket(self) -> None:
        found = self._take(r"\[\^?\]?")
        if found is None:
            raise AssertionError("called at a bracket")
        self._out.append(found[0].replace("]", "\\]"))
        while self._at < len(self._text):
            if self._take(r"\]"):
                self._out.append("]")
                return
            if found := self._take(r"\[:(\^?)([a-z]+):\]"):
                if found[1] or found[2] not in _POSIX_CLASSES:
                    raise ToolError(f"the class {found[0]} is not known")
                self._out.append(_POSIX_CLASSES[found[2]])
            elif self._take(r"&&|--|~~|\["):
                raise ToolError("classes inside classes need ripgrep, which is not installed; escape [ as \\[")
            elif not (self._text[self._at] == "\\" and self._common_escape()):
                step = 2 if self._text[self._at] == "\\" else 1
                self._out.append(self._text[self._at : self._at + step])
                self._at += step
        raise ToolError("unclosed character class: a [ has no ]")

    def _group(self) -> None:
        if found := self._take(r"\(\?<([A-Za-z_]\w*)>"):
            self._out.append(f"(?P<{found[1]}>")
            self._closers.append(")")
        elif found := self._take(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?\)"):
            # The flag applies to the rest of its group; Python wants a group of its own for that.
            self._out.append(_flags(found[1], found[2]))
            self._extend_closer()
        elif found := self._take(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?:"):
            self._out.append(_flags(found[1], found[2]))
            self._closers.append(")")
        else:
            self._out.append("(")
            self._at += 1
            self._closers.append(")")

    def _extend_closer(self) -> None:
        if self._closers:
            self._closers[-1] += ")"
        else:
            self._text += ")"
            self._closers.append(")")


def _flags(switched_on: str, switched_off: str | None) -> str:
    known = {"i", "m", "s", "u"}
    if not set(switched_on) <= known or not set(switched_off or "") <= known - {"u"}:
        raise ToolError(f"the flags {switched_on}{'-' if switched_off else ''}{switched_off or ''} need ripgrep")
    on, off = switched_on.replace("u", ""), switched_off or ""
    return f"(?{on}{'-' if off else ''}{off}:"


def _character(digits: str) -> str:
    code = int(digits, 16)
    if code > 0x10FFFF:
        raise ToolError(f"there is no character {digits}")
    return f"\\U{code:08x}"
