"""Import-only stand-in for torchvision. Our own; it holds no code of that package.

The torchvision that a package index serves beside a CPU build of torch may belong to another build and then
fails at import. SGLang and transformers import it for image models only, and text models never call it.
"""

__version__ = "0.0.0+stub"
