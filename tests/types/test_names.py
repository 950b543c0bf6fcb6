import pytest

from panpan.types.events import known_name


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("bash", ["Bash", "Read"], "Bash"),
        ("Bash", ["Bash", "bash"], "Bash"),
        ("BASH", ["Bash", "bash"], "BASH"),
        ("Bsh", ["Bash"], "Bsh"),
    ],
)
def test_known_name_ignores_case_where_one_is_meant(name: str, known: list[str], meant: str) -> None:
    assert known_name(name, known) == meant
