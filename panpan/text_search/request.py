"""One question to a search program: which folder, what to look for, and how to answer.

The rule: ripgrep and the search that stands in for it get the same request and print the same form, so that nothing
outside of `engine.py` knows which of them ran.
"""

from typing import Literal, TypeAlias

from panpan.types.dataclass import dataclass

Answer: TypeAlias = Literal["lines", "files", "counts", "listing"]
"""Lines that match, files that hold a match, numbers of matching lines, or names of files whatever is in them."""

HIDDEN_FOLDERS = (".git", ".hg", ".svn", ".jj")
"""Never searched: what version control keeps for itself."""

MAX_COLUMNS = 2000
"""Bytes of a line that are printed; what the model is shown of it is cut further."""

_NAMES_TYPE = "panpannames"


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What to search for."""

    folder: str
    """Absolute; the search starts here, and the paths in the answer are relative to it."""
    answer: Answer
    file: str | None = None
    """The name of the one file in the folder to search; None for all of them."""
    pattern: str = ""
    ignore_case: bool = False
    is_multiline: bool = False
    before: int = 0
    after: int = 0
    file_type: str | None = None
    name_globs: tuple[str, ...] = ()
    """A file's name must match one of these, where there are any; not used together with `file_type`."""
    excluded: tuple[str, ...] = ()
    """Globs of files and folders to leave out."""
    is_in_repository: bool = True
    """Whether a git repository is around the folder; see `ignore_rules.py`."""
    has_parent_rules: bool = True
    """Whether the .gitignore files above the folder count."""
    is_sorted: bool = False
    """Whether the answer comes in the order of paths, which costs time; a listing comes newest first in any case."""

    def ripgrep_arguments(self) -> list[str]:
        """Return the request as ripgrep takes it."""
        arguments = ["--no-config", "--no-messages", "--color=never", "--null", *self._selection_arguments()]
        if self.answer == "listing":
            return [*arguments, "--files", "--sortr=modified", "--", "./"]
        arguments += ["--no-heading", "--with-filename", "--crlf", "--engine=auto"]
        arguments += {
            "lines": ["--line-number", f"--max-columns={MAX_COLUMNS}", "--max-columns-preview"],
            "files": ["--files-with-matches"],
            "counts": ["--count"],
        }[self.answer]
        if self.answer == "lines" and (self.before or self.after):
            arguments += [f"--before-context={self.before}", f"--after-context={self.after}"]
        if self.ignore_case:
            arguments.append("--ignore-case")
        if self.is_multiline:
            arguments += ["--multiline", "--multiline-dotall"]
        if self.is_sorted:
            arguments.append("--sort=path")
        return [*arguments, f"--regexp={self.pattern}", "--", f"./{self.file or ''}"]

    def _selection_arguments(self) -> list[str]:
        """Say which files count. A glob that includes beats .gitignore and a type does not, so names come as a type."""
        arguments = ["--hidden", "--no-ignore-global", "--no-ignore-dot"]
        arguments += [f"--glob=!{name}" for name in (*HIDDEN_FOLDERS, *self.excluded)]
        if not self.is_in_repository:
            arguments.append("--no-require-git")
        if not self.has_parent_rules:
            arguments.append("--no-ignore-parent")
        if self.file_type is not None:
            arguments.append(f"--type={self.file_type}")
        elif self.name_globs:
            arguments += [f"--type-add={_NAMES_TYPE}:{glob}" for glob in self.name_globs]
            arguments.append(f"--type={_NAMES_TYPE}")
        return arguments
