"""Builds the extension with CMake; `pyproject.toml` has everything else."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent


class CMakeBuild(build_ext):
    """The one extension is CMake's target `monet_python`."""

    def build_extension(self, ext: Extension) -> None:
        given = os.environ.get("MONET_BUILD_FOLDER")  # one that is configured already saves time
        folder = Path(given or ROOT / "build" / "python")
        if given is None:
            subprocess.run(
                ["cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DMONET_PYTHON=ON",
                 "-DMONET_UNITY=ON", f"-DPython3_EXECUTABLE={sys.executable}"],
                check=True,
            )  # fmt: skip
        subprocess.run(["cmake", "--build", folder, "--target", "monet_python"], check=True)
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        self.copy_file(os.fspath(folder / "python" / "monet" / target.name), os.fspath(target))


setup(ext_modules=[Extension("monet._monet", sources=[])], cmdclass={"build_ext": CMakeBuild})
