"""Names of torchvision.transforms that are imported but, for text models, never used. See ../__init__.py."""

import enum


class InterpolationMode(enum.Enum):
    """The real enumeration's members: image processors name them in their defaults."""

    NEAREST = "nearest"
    NEAREST_EXACT = "nearest-exact"
    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    BOX = "box"
    HAMMING = "hamming"
    LANCZOS = "lanczos"


def __getattr__(name: str) -> type:
    if name.startswith("__"):
        raise AttributeError(name)
    return type(name, (), {})
