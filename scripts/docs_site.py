"""Pages of the site that are elsewhere in the repository: the README, CONTRIBUTING, the changelog, a list of decisions.

A hook of mkdocs (https://www.mkdocs.org/user-guide/configuration/#hooks); `make docs` builds the site.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
MOVED = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changelog.md"}
"""Files of the repository's top folder, and their pages."""

_LINK = re.compile(r"(\]\()([^)#\s]+)((?:#[^)\s]*)?\))")


def with_links_of_site(text: str, *, is_of_top: bool) -> str:
    """Return a page with its links changed to the addresses of the site.

    Args:
        text: Markdown.
        is_of_top: True if it is in the top folder, else in docs/.
    """

    def moved(match: re.Match[str]) -> str:
        target = match[2]
        if is_of_top:
            target = MOVED.get(target, target.removeprefix("docs/"))
        elif target.startswith("../"):
            target = MOVED.get(target.removeprefix("../"), target)
        return f"{match[1]}{'adr/index.md' if target == 'adr' else target}{match[3]}"

    return _LINK.sub(moved, text)


def decisions(folder: Path) -> str:
    """Return the page that lists the decisions in a folder, each with its title."""
    titles = {path.name: path.read_text(encoding="utf-8").partition("\n")[0] for path in sorted(folder.glob("0*.md"))}
    rows = (f"- [{title.removeprefix('# ')}]({name})" for name, title in titles.items())
    return "\n".join(["# Decisions", "", "Why panpan is as it is, and what was given up for it.", "", *rows, ""])


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are elsewhere in the repository."""
    for name, page in MOVED.items():
        text = with_links_of_site((ROOT / name).read_text(encoding="utf-8"), is_of_top=True)
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "adr/index.md", content=decisions(Path(config.docs_dir) / "adr")))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let links to files of the top folder lead to their pages; give the first page the width of its contents list."""
    if page.file.src_uri == "index.md":
        page.meta["hide"] = ["toc"]
    return markdown if page.file.src_uri in MOVED.values() else with_links_of_site(markdown, is_of_top=False)
