"""The pattern of a rule for Bash that means one line and no other.

The rule: `permissions/rules/command_pattern.py` reads what is written here.
"""


def exact_pattern(command: str) -> str:
    """Return the pattern that means this line and no other."""
    return trimmed(command).replace("\\", "\\\\").replace("*", "\\*")


def trimmed(command: str) -> str:
    """Return the line without the blanks around it that mean nothing to a shell; one behind a backslash does."""
    short = command.strip(" \t\n")
    return command.lstrip(" \t\n") if short.endswith("\\") else short
