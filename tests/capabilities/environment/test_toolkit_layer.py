from pathlib import Path

import pytest

from panpan.capabilities.environment.env_doctor import inspect_layers
from panpan.capabilities.environment.toolkit_layer import ToolkitLayer
from panpan.python_environments.find_environment import find_environment
from panpan.python_environments.machine_root import MachineRoot
from tests.fakes.machines import PROJECT, Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    machine = Machine(tmp_path)
    machine.linux()
    machine.venv()
    return machine


def toolkit_of(machine: Machine) -> ToolkitLayer:
    root = MachineRoot(machine.root)
    environment = find_environment(root, PROJECT, {})
    assert environment is not None
    return inspect_layers(root, environment, {}).toolkit


def test_pytorch_build_is_in_its_version_file(machine: Machine) -> None:
    machine.torch("2.3.0", "12.1")

    (torch,) = toolkit_of(machine).frameworks

    assert (torch.name, torch.platform, torch.runtime) == ("torch", "cuda", (12, 1))
    assert torch.source.endswith("/torch/version.py")


def test_pytorch_build_follows_its_version_or_is_unknown(machine: Machine) -> None:
    machine.package("torch", "2.3.0+rocm6.0")
    of_version = toolkit_of(machine).framework("torch")

    folder = machine.root / machine.site[1:]
    (folder / "torch-2.3.0+rocm6.0.dist-info" / "METADATA").write_text("Name: torch\nVersion: 2.3.0\n\n")

    assert of_version is not None
    assert (of_version.platform, of_version.runtime) == ("rocm", (6, 0))
    assert toolkit_of(machine).frameworks == ()


def test_jax_uses_gpus_by_its_plug_in(machine: Machine) -> None:
    machine.package("jaxlib", "0.4.30")
    alone = toolkit_of(machine).framework("jaxlib")

    machine.package("jax-cuda12-plugin", "0.4.30")
    with_plugin = toolkit_of(machine).framework("jaxlib")

    assert alone is not None
    assert with_plugin is not None
    assert (alone.platform, with_plugin.platform, with_plugin.runtime) == ("cpu", "cuda", (12,))


def test_system_libraries_are_found_with_versions(machine: Machine) -> None:
    machine.file(
        "/usr/include/cudnn_version.h", "#define CUDNN_MAJOR 8\n#define CUDNN_MINOR 9\n#define X (CUDNN_MAJOR)\n"
    )
    machine.file("/usr/include/nccl.h", "#define NCCL_MAJOR 2\n")
    machine.library("/usr/lib/x86_64-linux-gnu/libnccl.so.2")

    found = [(one.name, one.value) for one in toolkit_of(machine).found]

    assert found == [("cuDNN", "8.9 (of the system)"), ("NCCL", "libnccl.so.2")]


@pytest.mark.parametrize(
    ("path", "content", "version"),
    [
        ("/usr/local/cuda/version.json", '{"cuda": {"version": "12.4.1"}}', (12, 4, 1)),
        ("/usr/local/cuda/version.json", "[[[", ()),
        ("/usr/local/cuda/version.txt", "CUDA Version 10.2.89\n", (10, 2, 89)),
    ],
)
def test_system_toolkit_has_its_version(machine: Machine, path: str, content: str, version: tuple[int, ...]) -> None:
    machine.file(path, content)

    assert toolkit_of(machine).toolkit == version


def test_toolkit_version_may_be_in_its_folder_name(machine: Machine) -> None:
    machine.file("/usr/local/cuda-13.0/bin/nvcc")
    machine.link("/usr/local/cuda", "/usr/local/cuda-13.0")

    assert toolkit_of(machine).toolkit == (13, 0)
