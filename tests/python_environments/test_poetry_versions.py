import pytest

from panpan.python_environments.python_manifests import poetry_range, poetry_requirements


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("^1.2.3", ">=1.2.3,<2"), ("^1.2", ">=1.2,<2"), ("^0.2.3", ">=0.2.3,<0.3"), ("^0.0.3", ">=0.0.3,<0.0.4"),
        ("^0", ">=0,<1"), ("^0.0", ">=0.0,<0.1"), ("~1.2.3", ">=1.2.3,<1.3"), ("~1.2", ">=1.2,<1.3"), ("~1", ">=1,<2"),
        ("*", ""), ("1.2.*", "==1.2.*"), ("1.2.3", "==1.2.3"), (">=1,<2", ">=1,<2"), ("=1.2", "==1.2"),
        (">= 3.9, !=3.9.7", ">=3.9,!=3.9.7"), ("~=1.2", "~=1.2"), ("^1 || ^2", None), ("latest", None), (3, None),
    ],
)  # fmt: skip
def test_poetry_versions_are_those_of_its_documentation(written: object, meant: str | None) -> None:
    assert poetry_range(written) == meant


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (
            {"version": "2.3.0", "extras": ["cuda"], "markers": "sys_platform == 'linux'"},
            ["x[cuda]==2.3.0; (sys_platform == 'linux')"],
        ),
        ({"version": "^2", "python": "<3.11"}, ["x>=2,<3; python_full_version < '3.11'"]),
        ({"version": "*", "platform": "win32"}, ["x; sys_platform == 'win32'"]),
        ({"git": "https://example.org/x", "branch": "main"}, ["x"]),
        ({"path": "../x", "develop": True}, ["x"]),
        ([{"version": "<=1", "python": "<3.9"}, {"version": ">=2", "python": "^3.9"}],
         ["x<=1; python_full_version < '3.9'", "x>=2; python_full_version >= '3.9' and python_full_version < '4'"]),
        ({"version": "^2", "python": "^3 || ^4"}, [None]),
        ({}, [None]),
    ],
)  # fmt: skip
def test_table_is_a_requirement_with_its_conditions(written: object, meant: list[str | None]) -> None:
    assert poetry_requirements("x", written) == meant
