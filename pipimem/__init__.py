"""pipimem: a file-first memory for chat bots and coding agents.

`pipimem.open(folder)` gives a `Memory`. Importing the package loads nothing; public names are resolved when used.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.errors import Busy, Conflict, Error, ModelFailed, NotFound, Refused, Unreadable, Usage
    from pipimem.memory import Memory, init, open

__version__ = "0.1.0"
__all__ = [
    "Busy",
    "Conflict",
    "Error",
    "Memory",
    "ModelFailed",
    "NotFound",
    "Refused",
    "Unreadable",
    "Usage",
    "init",
    "open",
]

_HOMES = {"Memory": "pipimem.memory", "init": "pipimem.memory", "open": "pipimem.memory"}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'pipimem' has no attribute '{name}'")
    from importlib import import_module

    return getattr(import_module(_HOMES.get(name, "pipimem.errors")), name)
