from pathlib import Path

from panpan.capabilities.environment.python_layer import PythonLayer, inspect_python
from panpan.python_environments.find_environment import Environment
from panpan.python_environments.machine_root import MachineRoot
from tests.fakes.machines import ENVIRONMENT, Machine


def layer(root: Path, path: str = ENVIRONMENT, kind: str = "venv") -> PythonLayer:
    return inspect_python(MachineRoot(root), Environment(path, kind, ""))  # type: ignore[arg-type]


def test_interpreter_is_known_from_files(tmp_path: Path) -> None:
    Machine(tmp_path).venv(version="3.11.9")

    python = layer(tmp_path)

    assert (python.version, python.minor, python.abi) == ("3.11.9", (3, 11), "cp311")
    assert (python.program, python.machine) == ("/usr/bin/python3.11", "x86_64")
    assert python.site_folders == (f"{ENVIRONMENT}/lib/python3.11/site-packages",)


def test_free_threaded_python_has_its_own_abi(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file(f"{ENVIRONMENT}/pyvenv.cfg", "home = /usr/bin\nversion_info = 3.13.1\n")
    machine.file(f"{ENVIRONMENT}/lib/python3.13t/site-packages/x.py")

    assert layer(tmp_path).abi == "cp313t"


def test_pypy_has_no_abi_of_cpython(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file(f"{ENVIRONMENT}/pyvenv.cfg", "implementation = PyPy\nversion = 3.10.14\n")
    machine.file(f"{ENVIRONMENT}/lib/pypy3.10/site-packages/x.py")

    assert layer(tmp_path).abi == ""


def test_system_packages_count_if_the_environment_says_so(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.venv()
    settings = f"{ENVIRONMENT}/pyvenv.cfg"
    machine.file("/usr/local/lib/python3.11/dist-packages/a.py")
    machine.file("/usr/lib/python3/dist-packages/b.py")
    machine.file("/usr/local/lib/python3.9/dist-packages/of_another.py")

    alone = layer(tmp_path)
    machine.file(settings, "home = /usr/bin\nversion = 3.11.4\ninclude-system-site-packages = true\n")
    together = layer(tmp_path)

    assert len(alone.site_folders) == 1
    assert together.site_folders[1:] == ("/usr/local/lib/python3.11/dist-packages", "/usr/lib/python3/dist-packages")


def test_conda_environments_version_is_in_its_records(tmp_path: Path) -> None:
    Machine(tmp_path).conda(12, numpy="1.26.4")

    python = layer(tmp_path, kind="conda")

    assert python.version == "3.12.4"
    assert ("numpy", "1.26.4") in python.of_conda


def test_interpreters_version_is_that_of_its_headers(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.file("/usr/local/lib/python3.10/dist-packages/x.py")

    short = layer(tmp_path, "/usr/local", "python")
    machine.file("/usr/local/include/python3.10/patchlevel.h", '#define PY_VERSION  "3.10.12"\n')
    full = layer(tmp_path, "/usr/local", "python")

    assert (short.version, full.version) == ("3.10", "3.10.12")


def test_debians_python_has_packages_below_usr_local(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.library("/usr/bin/python3.10")
    machine.link("/usr/bin/python3", "python3.10")
    machine.file("/usr/local/lib/python3.10/dist-packages/a.py")
    machine.file("/usr/lib/python3/dist-packages/b.py")
    machine.file("/usr/lib/python3.12/dist-packages/of_another.py")

    below_local = layer(tmp_path, "/usr/local", "python")

    assert (below_local.version, below_local.program) == ("3.10", "/usr/bin/python3.10")
    assert below_local.site_folders == ("/usr/local/lib/python3.10/dist-packages", "/usr/lib/python3/dist-packages")
    assert layer(tmp_path, "/usr", "python") == below_local


def test_folder_shared_by_packages_is_not_missed(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.venv()
    machine.package("thing", "1.0", files={"thing/__init__.py": "", "tests/__init__.py": ""})
    (tmp_path / machine.site[1:] / "tests/__init__.py").unlink()

    assert [package.damage for package in layer(tmp_path).packages] == [""]


def test_lib64_link_is_not_counted_twice(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.venv()
    machine.link(f"{ENVIRONMENT}/lib64", "lib")

    assert len(layer(tmp_path).site_folders) == 1


def test_setuptools_and_conda_records_are_read(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.venv()
    machine.file(f"{machine.site}/torch-2.3.0-py3.11.egg-info/PKG-INFO", "Name: torch\nVersion: 2.3.0\n\n")
    machine.file(f"{machine.site}/old.thing-1.2.egg-info", "Name: old.thing\nVersion: 1.2\n\n")
    machine.file(f"{machine.site}/empty-0.1.egg-info/top_level.txt", "empty\n")

    found = {package.name: (package.version, package.damage) for package in layer(tmp_path).packages}

    damaged = ("0.1", "its PKG-INFO is missing or cannot be read")
    assert found == {"torch": ("2.3.0", ""), "old-thing": ("1.2", ""), "empty": damaged}


def test_metadata_counts_only_in_its_head(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    machine.venv()
    machine.package("a.b_c", "1.0", requires=["x>=1"], wheel="a_b_c-1.0%2Bcu12torch2.3cxx11abiTRUE-py3-none-any.whl")

    (package,) = layer(tmp_path).packages

    assert (package.name, package.requires) == ("a-b-c", ("x>=1",))
    assert package.origin.wheel == "a_b_c-1.0+cu12torch2.3cxx11abiTRUE-py3-none-any.whl"
