"""Machines with the layer that is broken on each, reasoned from what is on it; None where none is."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

from panpan.capabilities.environment.layers import Layer, State
from tests.fakes.elf_files import elf_file
from tests.fakes.machines import ENVIRONMENT, NEW_STRINGS, OLD_STRINGS, PROJECT, Machine

A100, H100, RTX_3090, P100 = "0x20b0", "0x2330", "0x2204", "0x15f8"
AMD = "0x1002"


def a_machine(root: Path, *, arch: str = "x86_64", minor: int = 11, glibc: int = 35) -> Machine:
    machine = Machine(root, arch)
    machine.linux(glibc=glibc)
    machine.venv(minor)
    return machine


def with_gpu(root: Path, device: str = A100, driver: str = "535.129.03", *, glibc: int = 35) -> Machine:
    machine = a_machine(root, glibc=glibc)
    machine.gpu(device)
    machine.driver(driver)
    return machine


def laptop(root: Path) -> None:
    machine = a_machine(root)
    machine.torch(cuda=None)
    machine.package("numpy", "1.26.4", files={"numpy/__init__.py": "", **machine.module("numpy/core/_multiarray")})
    machine.package("scipy", "1.13.0", requires=["numpy<2.3,>=1.22.4", "pytest; extra == 'test'"])


def laptop_with_the_default_torch(root: Path) -> None:
    a_machine(root).torch()


def a100(root: Path) -> None:
    with_gpu(root).torch()


def h100_with_cuda_11_7(root: Path) -> None:
    """Hopper (9.0) is known from CUDA 11.8 on."""
    with_gpu(root, H100).torch("1.13.1", "11.7")


def pascal_with_cuda_13(root: Path) -> None:
    machine = with_gpu(root, P100, "580.65.06")
    machine.file("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t Tesla P100-PCIE-16GB\nIRQ: 5\n")
    machine.torch("2.9.0", "13.0", cudnn=9)


def old_driver(root: Path) -> None:
    """CUDA 12 needs driver 525, also with minor version compatibility."""
    with_gpu(root, driver="470.82.01").torch()


def old_driver_with_forward_compatibility(root: Path) -> None:
    machine = with_gpu(root, driver="470.82.01")
    machine.torch()
    machine.library("/usr/local/cuda/compat/libcuda.so.1")


def driver_updated_without_a_restart(root: Path) -> None:
    machine = a_machine(root)
    machine.gpu(A100)
    machine.driver("535.129.03", libcuda="550.54.15")
    machine.torch()


def container_without_gpus(root: Path) -> None:
    """The kernel's module is that of the host; the library of the driver is not in the container."""
    machine = a_machine(root)
    machine.gpu(A100)
    machine.driver("535.129.03", libcuda=None)
    machine.torch()


def no_driver(root: Path) -> None:
    machine = a_machine(root)
    machine.gpu(A100)
    machine.torch()


def old_glibc_for_a_wheel(root: Path) -> None:
    machine = a_machine(root, glibc=17)
    machine.package("pyarrow", "16.0.0", tag="cp311-cp311-manylinux_2_28_x86_64")


def old_glibc_for_a_module(root: Path) -> None:
    """Built by hand on a newer machine: no tag says so, only the symbols do."""
    machine = a_machine(root, glibc=31)
    module = machine.module("mine/_fast", versions={"libc.so.6": ["GLIBC_2.2", "GLIBC_2.34"]})
    machine.package("mine", "1.0", files={"mine/__init__.py": "", **module})


def old_libstdcxx(root: Path) -> None:
    machine = a_machine(root)
    needs = {"libstdc++.so.6": ["GLIBCXX_3.4.32"]}
    module = machine.module("mine/_fast", needed=["libstdc++.so.6", "libc.so.6"], versions=needs)
    machine.package("mine", "1.0", files={"mine/__init__.py": "", **module})


def wheel_of_another_python(root: Path) -> None:
    machine = a_machine(root)
    module = machine.module("numpy/core/_multiarray_umath", abi="cp310")
    files = {"numpy/__init__.py": "", **module}
    machine.package("numpy", "1.26.4", tag="cp310-cp310-manylinux_2_17_x86_64", files=files)


def module_of_another_python(root: Path) -> None:
    """Copied from elsewhere: no package says anything of it."""
    machine = a_machine(root)
    for path, content in machine.module("kernels/_fast", abi="cp39").items():
        machine.file(f"{machine.site}/{path}", content)


def cudnn_9_for_cudnn_8(root: Path) -> None:
    with_gpu(root).torch(cudnn=8, has_cudnn=9)


def without_nccl(root: Path) -> None:
    with_gpu(root).torch(has_nccl=False)


def tensorflow_without_cudnn(root: Path) -> None:
    """TensorFlow loads cuDNN when it runs and is not linked with it; what it was built with says which."""
    tensorflow_wheel(with_gpu(root))


def tensorflow_wheel(machine: Machine) -> None:
    info = "build_info = OrderedDict([('cuda_version', '12.3'), ('cudnn_version', '8'), ('is_cuda_build', True)])"
    files = {"tensorflow/__init__.py": "", "tensorflow/python/platform/build_info.py": info}
    machine.package("tensorflow", "2.16.1", files=files)


def flash_attention_of_the_other_abi(root: Path) -> None:
    machine = with_gpu(root)
    machine.torch()
    module = machine.module("flash_attn_2_cuda", needed=["libc10.so"], symbols=[NEW_STRINGS])
    machine.package("flash-attn", "2.5.8", requires=["torch"], files={"flash_attn/__init__.py": "", **module})


def flash_attention_of_the_same_abi(root: Path) -> None:
    machine = with_gpu(root)
    machine.torch()
    module = machine.module("flash_attn_2_cuda", needed=["libc10.so"], symbols=[OLD_STRINGS])
    wheel = "flash_attn-2.5.8%2Bcu122torch2.3cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    files = {"flash_attn/__init__.py": "", **module}
    machine.package("flash-attn", "2.5.8", requires=["torch"], files=files, wheel=wheel)


def flash_attention_for_another_torch(root: Path) -> None:
    machine = with_gpu(root)
    machine.torch()
    wheel = "flash_attn-2.6.3+cu123torch2.4cxx11abiFALSE-cp311-cp311-linux_x86_64.whl"
    machine.package("flash-attn", "2.6.3", requires=["torch"], wheel=wheel)


def torch_scatter_for_another_torch(root: Path) -> None:
    machine = with_gpu(root)
    machine.torch()
    machine.package("torch-scatter", "2.1.2+pt22cu121")


def torchvision_of_another_cuda(root: Path) -> None:
    machine = with_gpu(root)
    machine.torch()
    machine.package("torchvision", "0.18.0+cu118", requires=["torch==2.3.0"])


def torchvision_for_another_torch(root: Path) -> None:
    machine = with_gpu(root)
    machine.torch()
    machine.package("torchvision", "0.17.2+cu121", requires=["torch==2.2.2"])


def numpy_2_with_an_old_module(root: Path) -> None:
    machine = a_machine(root)
    machine.package("numpy", "2.0.1")
    old = machine.module("skimage/_shared", texts=b"\0numpy.core._multiarray_umath\0_ARRAY_API\0")
    machine.package("scikit-image", "0.22.0", requires=["numpy>=1.22"], files={"skimage/__init__.py": "", **old})


def numpy_2_with_a_new_module(root: Path) -> None:
    machine = a_machine(root)
    machine.package("numpy", "2.0.1")
    texts = b"\0numpy._core._multiarray_umath\0numpy.core._multiarray_umath\0"
    new = machine.module("skimage/_shared", texts=texts)
    machine.package("scikit-image", "0.24.0", requires=["numpy>=1.23"], files={"skimage/__init__.py": "", **new})


def alpine_with_a_manylinux_wheel(root: Path) -> None:
    machine = Machine(root)
    machine.alpine()
    machine.venv()
    module = machine.module("numpy/core/_multiarray_umath")
    files = {"numpy/__init__.py": "", **module}
    machine.package("numpy", "1.26.4", tag="cp311-cp311-manylinux_2_17_x86_64", files=files)


def arm_with_an_intel_module(root: Path) -> None:
    machine = a_machine(root, arch="aarch64")
    machine.package("mine", "1.0", files={"mine/__init__.py": "", **machine.module("mine/_fast", arch="x86_64")})


def without_a_library_of_the_system(root: Path) -> None:
    machine = a_machine(root)
    module = machine.module("cv2/cv2", needed=["libGL.so.1", "libc.so.6"])
    machine.package("opencv-python", "4.9.0.80", files={"cv2/__init__.py": "", **module})


def module_cut_short(root: Path) -> None:
    machine = a_machine(root)
    module = {name: content[:100] for name, content in machine.module("mine/_fast").items()}
    machine.package("mine", "1.0", files={"mine/__init__.py": "", **module})


def wsl(root: Path) -> None:
    """Windows has the driver; its library lies in a folder of its own, and no GPU is listed."""
    machine = a_machine(root)
    machine.file("/proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n")
    machine.file("/dev/dxg")
    machine.library("/usr/lib/wsl/lib/libcuda.so.1")
    machine.torch()


def wsl_without_libcuda(root: Path) -> None:
    machine = a_machine(root)
    machine.file("/proc/sys/kernel/osrelease", "5.15.153.1-microsoft-standard-WSL2\n")
    machine.torch()


def rocm_on_nvidia(root: Path) -> None:
    with_gpu(root).torch(cuda=None, hip="6.0")


def rocm(root: Path) -> None:
    machine = a_machine(root)
    machine.gpu("0x740f", AMD)
    machine.file("/sys/module/amdgpu/version", "6.7.0\n")
    machine.torch(cuda=None, hip="6.0")


def rocm_without_a_driver(root: Path) -> None:
    machine = a_machine(root)
    machine.gpu("0x740f", AMD)
    machine.torch(cuda=None, hip="6.0")


def conda_with_pip_over_it(root: Path) -> None:
    """A version of pip's in the place of conda's may work, but what conda knows is not true any more."""
    machine = Machine(root)
    machine.linux()
    machine.conda(numpy="1.26.4")
    machine.package("numpy", "2.0.0")


def conda_and_pip_side_by_side(root: Path) -> None:
    machine = Machine(root)
    machine.linux()
    machine.conda(numpy="1.26.4")
    machine.package("numpy", "1.26.4")
    machine.package("numpy", "2.0.0")


def metadata_gone(root: Path) -> None:
    machine = a_machine(root)
    machine.package("numpy", "1.26.4")
    (root / machine.site[1:] / "numpy-1.26.4.dist-info" / "METADATA").unlink()


def half_uninstalled(root: Path) -> None:
    machine = a_machine(root)
    machine.package("numpy", "1.26.4")
    (root / machine.site[1:] / "numpy" / "__init__.py").unlink()


def half_deleted(root: Path) -> None:
    machine = a_machine(root)
    machine.file(f"{machine.site}/~umpy/__init__.py")


def no_environment(root: Path) -> None:
    Machine(root).linux()


def interpreter_gone(root: Path) -> None:
    a_machine(root)
    (root / "usr/bin/python3.11").unlink()


def too_old_a_python(root: Path) -> None:
    a_machine(root).package("jax", "0.7.0", requires_python=">=3.12")


def without_a_dependency(root: Path) -> None:
    a_machine(root).package("einops-exts", "0.0.4", requires=["einops>=0.4", 'tomli; python_version < "3.11"'])


def a_project(root: Path, text: str, file: str = "requirements.txt") -> Machine:
    machine = a_machine(root)
    machine.file(f"{PROJECT}/{file}", text)
    machine.package("numpy", "2.1.0")
    return machine


def package_of_the_project_missing(root: Path) -> None:
    a_project(root, "numpy>=2\nscipy>=1.11  # for the fit\n")


def version_that_the_project_does_not_want(root: Path) -> None:
    a_project(root, '[project]\nname = "paper"\ndependencies = ["numpy<2"]\n', "pyproject.toml")


def python_that_the_project_does_not_want(root: Path) -> None:
    """It is told before a package that is missing: the environment has to be made anew for it."""
    manifest = '[project]\nname = "paper"\nrequires-python = ">=3.12"\ndependencies = ["scipy"]\n'
    a_project(root, manifest, "pyproject.toml")


def project_that_has_all(root: Path) -> None:
    """Itself included, and what is asked for elsewhere, or by others only, excluded."""
    lines = [
        "-e .",
        "-c bounds.txt",
        "numpy~=2.1",
        'tomli; python_version < "3.11"',
        'pywin32; sys_platform == "win32"',
    ]
    machine = a_project(root, "\n".join(lines))
    machine.file(f"{PROJECT}/bounds.txt", "numpy<3\nscipy<1\n")
    project = ["[project]", 'name = "My.Paper"', 'dependencies = ["my_paper[plots]"]']
    extras = ["[project.optional-dependencies]", 'plots = ["other"]']
    machine.file(f"{PROJECT}/pyproject.toml", "\n".join([*project, *extras]))


def paper_whose_pins_are_not_kept(root: Path) -> None:
    """As left by an installation that was cut off, into the Python that happened to be there."""
    machine = with_gpu(root)
    machine.torch()
    machine.file(f"{PROJECT}/requirements.txt", "torch==1.13.1\ntorchvision==0.14.1\ntimm==0.6.12\n")


def old_driver_for_what_the_project_does_not_even_want(root: Path) -> None:
    old_driver(root)
    (root / PROJECT[1:] / "requirements.txt").write_text("torch<2\n")


def module_of_a_python_that_the_project_does_not_want(root: Path) -> None:
    """A new environment gets new modules; to mend them in the old one would be for nothing."""
    wheel_of_another_python(root)
    (root / PROJECT[1:] / "setup.cfg").write_text("[options]\npython_requires = >=3.12\ninstall_requires =\n  numpy\n")


def numpy_that_the_project_does_not_want(root: Path) -> None:
    """Environment built for the older one; it works as soon as the project's choice applies."""
    numpy_2_with_an_old_module(root)
    (root / PROJECT[1:] / "requirements.txt").write_text("numpy<2\nscikit-image\n")


def condas_with_another_version(root: Path) -> None:
    machine = Machine(root)
    machine.linux()
    machine.conda(numpy="2.1.0", openssl="1.1.1w")
    machine.file(f"{PROJECT}/environment.yml", "dependencies:\n  - python=3.11\n  - numpy=1.26\n  - openssl\n")


def project_of_poetrys(root: Path) -> None:
    manifest = [
        "[tool.poetry.dependencies]",
        'python = "^3.9"',
        'numpy = "^2.1"',
        'tomli = {version = "*", python = "<3.11"}',
    ]
    a_project(root, "\n".join(manifest), "pyproject.toml")


def project_of_which_a_program_tells(root: Path) -> None:
    a_project(root, "setup(install_requires=open('needs').readlines())", "setup.py")


def no_avx_for_jax(root: Path) -> None:
    machine = a_machine(root)
    machine.processor("fpu sse sse2 sse4_2")
    machine.package("jaxlib", "0.4.30")


def mac(root: Path) -> None:
    machine = Machine(root, "aarch64")
    version = "<plist><dict><key>ProductVersion</key><string>14.5</string></dict></plist>"
    machine.file("/System/Library/CoreServices/SystemVersion.plist", version)
    machine.venv()
    machine.package("numpy", "1.26.4", tag="cp311-cp311-macosx_11_0_arm64")


def mac_with_a_linux_wheel(root: Path) -> None:
    mac(root)
    folder = root / ENVIRONMENT[1:] / "lib/python3.11/site-packages/numpy-1.26.4.dist-info"
    (folder / "WHEEL").write_text("Tag: cp311-cp311-manylinux_2_17_x86_64\n")


def driver_and_packages_broken(root: Path) -> None:
    """Several layers; the lowest counts."""
    machine = with_gpu(root, driver="470.82.01")
    machine.torch(cudnn=8, has_cudnn=9)
    machine.package("einops-exts", "0.0.4", requires=["einops>=0.4"])


def another_toolkit(root: Path) -> None:
    """PyTorch brings its own runtime; the other toolkit only matters to whoever compiles."""
    machine = with_gpu(root)
    machine.torch()
    machine.file("/usr/local/cuda/version.json", '{"cuda": {"name": "CUDA SDK", "version": "11.8.20220929"}}')


def in_a_container_without_devices(root: Path) -> None:
    """Nothing says whether there is a GPU."""
    laptop_with_the_default_torch(root)
    shutil.rmtree(root / "sys")


def numba_without_tbb(root: Path) -> None:
    """One of several modules, for a library that most do not have: the package works without it."""
    machine = a_machine(root)
    module = machine.module("numba/np/tbbpool", needed=["libtbb.so.12", "libc.so.6"])
    files = {"numba/__init__.py": "", **machine.module("numba/_helper"), **module}
    machine.package("numba", "0.60.0", files=files)


def bundled_library_gone(root: Path) -> None:
    """Wheel with libraries under names of its own, which exist nowhere else."""
    machine = a_machine(root)
    module = machine.module("scipy/linalg/_fblas", needed=["libopenblas-3f5dbe71.so"])
    files = {"scipy/__init__.py": "", **machine.module("scipy/_ccallback"), **module}
    machine.package("scipy", "1.13.0", files=files)


def laptop_with_tensorflow(root: Path) -> None:
    """Its usual wheel is built for CUDA, and computes on the processor where there is no GPU."""
    tensorflow_without_cudnn(root)
    shutil.rmtree(root / "sys/bus/pci/devices/0000:01:00.0")
    shutil.rmtree(root / "proc/driver")


def tensorflow_older_than_the_gpu(root: Path) -> None:
    machine = with_gpu(root, "0x2901", "570.86.15")
    machine.file("/proc/driver/nvidia/gpus/0000:01:00.0/information", "Model: \t\t NVIDIA B200\n")
    tensorflow_wheel(machine)
    machine.package("nvidia-cudnn-cu12", "8.9", files={"nvidia/cudnn/lib/libcudnn.so.8": elf_file()})


def image_with_a_newer_libcuda(root: Path) -> None:
    """Images of NVIDIA's put CUDA's own libcuda for older drivers before that of the driver."""
    machine = with_gpu(root)
    machine.torch()
    machine.library("/usr/local/cuda-12.4/compat/libcuda.so.550.54.15")
    machine.link("/usr/local/cuda-12.4/compat/libcuda.so.1", "libcuda.so.550.54.15")
    machine.file("/etc/ld.so.conf", "/usr/local/cuda-12.4/compat\n")


def helper_for_another_machine(root: Path) -> None:
    """As debugpy carries along; Python never imports it."""
    machine = a_machine(root, arch="aarch64")
    helper = {"debugpy/attach_linux_amd64.so": elf_file("x86_64", needed=["libdl.so.2"])}
    machine.package("debugpy", "1.8.1", files={"debugpy/__init__.py": "", **helper})


def stub_library(root: Path) -> None:
    """A plug-in that nothing imports may miss what it needs."""
    machine = a_machine(root)
    plugin = elf_file(needed=["libxcb-cursor.so.0"])
    machine.package("pyqt6", "6.7", files={"PyQt6/__init__.py": "", "PyQt6/plugins/libqxcb.so": plugin})


MACHINES: Mapping[Callable[[Path], None], tuple[Layer, str] | None] = {
    laptop: None,
    laptop_with_the_default_torch: None,
    a100: None,
    h100_with_cuda_11_7: ("toolkit", "gpu-generation"),
    pascal_with_cuda_13: ("toolkit", "gpu-generation"),
    old_driver: ("driver", "driver-version"),
    old_driver_with_forward_compatibility: None,
    driver_updated_without_a_restart: ("driver", "driver-match"),
    container_without_gpus: ("driver", "libcuda-missing"),
    no_driver: ("driver", "driver-missing"),
    old_glibc_for_a_wheel: ("binary", "glibc"),
    old_glibc_for_a_module: ("binary", "glibc"),
    old_libstdcxx: ("binary", "symbol-version"),
    wheel_of_another_python: ("binary", "python-abi"),
    module_of_another_python: ("binary", "python-abi"),
    cudnn_9_for_cudnn_8: ("toolkit", "gpu-dependency"),
    without_nccl: ("toolkit", "gpu-dependency"),
    tensorflow_without_cudnn: ("toolkit", "gpu-library"),
    flash_attention_of_the_other_abi: ("binary", "torch-abi"),
    flash_attention_of_the_same_abi: None,
    flash_attention_for_another_torch: ("binary", "built-for-torch"),
    torch_scatter_for_another_torch: ("binary", "built-for-torch"),
    torchvision_of_another_cuda: ("binary", "built-for-torch"),
    torchvision_for_another_torch: ("python", "dependency"),
    numpy_2_with_an_old_module: ("binary", "numpy-abi"),
    numpy_2_with_a_new_module: None,
    alpine_with_a_manylinux_wheel: ("binary", "c-library"),
    arm_with_an_intel_module: ("binary", "architecture"),
    without_a_library_of_the_system: ("binary", "library"),
    module_cut_short: ("binary", "damaged-binary"),
    another_toolkit: None,
    numba_without_tbb: None,
    bundled_library_gone: ("binary", "library"),
    laptop_with_tensorflow: None,
    tensorflow_older_than_the_gpu: None,
    image_with_a_newer_libcuda: None,
    helper_for_another_machine: None,
    in_a_container_without_devices: None,
    stub_library: None,
    wsl: None,
    wsl_without_libcuda: ("driver", "libcuda-missing"),
    rocm_on_nvidia: ("toolkit", "gpu-vendor"),
    rocm: None,
    rocm_without_a_driver: ("driver", "amd-driver"),
    conda_with_pip_over_it: None,
    conda_and_pip_side_by_side: ("python", "two-versions"),
    metadata_gone: ("python", "damaged-package"),
    half_uninstalled: ("python", "damaged-package"),
    half_deleted: None,
    no_environment: ("python", "environment"),
    interpreter_gone: ("python", "interpreter"),
    too_old_a_python: ("python", "requires-python"),
    without_a_dependency: ("python", "dependency"),
    package_of_the_project_missing: ("python", "project-package"),
    version_that_the_project_does_not_want: ("python", "project-package"),
    python_that_the_project_does_not_want: ("python", "project-python"),
    paper_whose_pins_are_not_kept: ("python", "project-package"),
    old_driver_for_what_the_project_does_not_even_want: ("driver", "driver-version"),
    module_of_a_python_that_the_project_does_not_want: ("python", "project-python"),
    numpy_that_the_project_does_not_want: ("python", "project-package"),
    condas_with_another_version: ("python", "project-package"),
    project_that_has_all: None,
    project_of_poetrys: None,
    project_of_which_a_program_tells: None,
    no_avx_for_jax: ("hardware", "processor"),
    mac: None,
    mac_with_a_linux_wheel: ("binary", "architecture"),
    driver_and_packages_broken: ("driver", "driver-version"),
}
"""Builders, each with the layer and the rule that has to come first."""

NOT_BROKEN: Mapping[Callable[[Path], None], tuple[str, State]] = {
    laptop_with_the_default_torch: ("no-gpu", "risk"),
    in_a_container_without_devices: ("no-gpu", "unknown"),
    old_driver_with_forward_compatibility: ("driver-version", "unknown"),
    wsl: ("driver-version", "unknown"),
    conda_with_pip_over_it: ("conda-and-pip", "risk"),
    half_deleted: ("leftover", "risk"),
    project_that_has_all: ("project-package", "holds"),
    project_of_poetrys: ("project-python", "holds"),
    project_of_which_a_program_tells: ("project-unclear", "unknown"),
    another_toolkit: ("toolkit-version", "risk"),
    stub_library: ("library", "risk"),
    numba_without_tbb: ("library", "risk"),
    laptop_with_tensorflow: ("no-gpu", "risk"),
    tensorflow_older_than_the_gpu: ("gpu-generation", "risk"),
    image_with_a_newer_libcuda: ("driver-version", "holds"),
    a100: ("gpu-generation", "holds"),
    flash_attention_of_the_same_abi: ("torch-abi", "holds"),
}
"""Builders of machines that are whole, each with a constraint of note."""
