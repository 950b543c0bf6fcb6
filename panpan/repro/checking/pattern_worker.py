"""Program that searches a text for patterns, in a process of its own: a stranger's pattern may take forever.

`python -m panpan.repro.checking.pattern_worker` reads a JSON object with `text` and `patterns`. It prints a JSON line
for each pattern as soon as it is done: the group of the last match, or null.
"""

import json
import re
import sys

FLAGS = re.MULTILINE


def _last_match(pattern: str, text: str) -> str | None:
    """Return the group of the last match in which it takes part; None if there is none."""
    found = None
    for match in re.compile(pattern, FLAGS).finditer(text):
        found = match[1] if match[1] is not None else found
    return found


def main() -> None:
    """Search for all patterns."""
    given = json.load(sys.stdin)
    for pattern in given["patterns"]:
        sys.stdout.write(f"{json.dumps(_last_match(pattern, given['text']))}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
