import pytest

from panpan.python_environments.requirement_files import requirement_lines, without_hashes


def test_lines_are_joined_without_comments_under_their_number() -> None:
    text = "# first\n  # second\na \\\n  >=1 # third\n\nb#c\n\\\n# fourth\nd"

    assert requirement_lines(text) == [(3, "a   >=1"), (6, "b#c"), (9, "d")]


@pytest.mark.parametrize(
    ("line", "bare"),
    [
        ("a==1 --hash=sha256:ab --hash sha512:cd", "a==1"),
        ("a==1\t--hash=sha256:ab", "a==1"),
        ("a==1", "a==1"),
        ("a==1 --hash=sha256:ab --global-option=x", "a==1 --hash=sha256:ab --global-option=x"),
        ("a==1 --hash=sha256:xy", "a==1 --hash=sha256:xy"),
        ("a" + " --hash=sha256:ab" * 20_000 + " !", "a" + " --hash=sha256:ab" * 20_000 + " !"),
        (" " * 500_000 + "a", " " * 500_000 + "a"),
    ],
)
def test_only_hashes_are_removed_and_at_once(line: str, bare: str) -> None:
    assert without_hashes(line) == bare
