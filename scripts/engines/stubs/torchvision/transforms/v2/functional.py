"""Names of torchvision.transforms.v2.functional: imported, never called for text models; a call raises."""

from collections.abc import Callable
from typing import NoReturn

from torchvision.transforms import InterpolationMode as InterpolationMode


def __getattr__(name: str) -> Callable[..., NoReturn]:
    if name.startswith("__"):
        raise AttributeError(name)

    def unavailable(*args: object, **kwargs: object) -> NoReturn:
        raise NotImplementedError(f"torchvision stand-in: {name}")

    return unavailable
