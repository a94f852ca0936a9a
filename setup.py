"""Puts copies of the shipped files into the wheel; all else is in pyproject.toml."""

import shutil
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent
sys.path.insert(0, str(ROOT / "src"))  # what is needed of rota needs nothing but Python

from rota.core.files import INSIDE, PACKAGE, shipped_files  # noqa: E402


class BuildWithShippedFiles(build_py):
    """A build of the package with the shipped files inside; an editable one finds them in the checkout."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        inside = Path(self.build_lib) / "rota" / INSIDE.relative_to(PACKAGE)
        shutil.rmtree(inside, ignore_errors=True)  # of an earlier build
        for file in shipped_files(ROOT):
            (inside / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, inside / file)


setup(cmdclass={"build_py": BuildWithShippedFiles})
