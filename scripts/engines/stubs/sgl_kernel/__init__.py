"""Import-only stand-in for SGLang's compiled kernel package. Our own: it holds no code of that package.

The real package is built for CUDA and cannot be imported on a machine without it, and there is no build for
CPUs to install. SGLang imports names from it at start all the same. Here any name, and any submodule, can
be imported, and calling one raises. A dense model on the CPU engine without AMX calls none of them: its
layers take their plain-torch paths, so what such a server prints and answers is the real engine's.
"""

import importlib.abc
import importlib.machinery
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import NoReturn

__version__ = "0.0.0+stub"


class Unavailable:
    """A name that exists only to be imported, subclassed or looked into."""

    def __init__(self, name: str) -> None:
        """Remember what was asked for, for the error."""
        self.__name__ = self.__qualname__ = name

    def __getattr__(self, name: str) -> "Unavailable":
        """Any attribute is another such name."""
        if name.startswith("__"):
            raise AttributeError(name)
        return Unavailable(f"{self.__name__}.{name}")

    def __mro_entries__(self, bases: tuple[object, ...]) -> tuple[type, ...]:
        """As a base class it adds nothing."""
        return ()

    def __call__(self, *args: object, **kwargs: object) -> NoReturn:
        """Say plainly that there is no kernel here, rather than compute something else."""
        raise NotImplementedError(f"kernel stand-in: {self.__name__}")


def _getter(module: str) -> Callable[[str], Unavailable]:
    def __getattr__(name: str) -> Unavailable:
        if name.startswith("__"):
            raise AttributeError(name)
        return Unavailable(f"{module}.{name}")

    return __getattr__


class _Submodules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.startswith(__name__ + "."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__getattr__"] = _getter(module.__name__)


sys.meta_path.append(_Submodules())
__getattr__ = _getter(__name__)
