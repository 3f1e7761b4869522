"""Every error pipimem raises on purpose: one sentence that names the thing, one with the next step.

The class carries the exit code of `docs/reference.md`; the command line and the server each have one handler.
"""


class Error(Exception):
    """An expected failure.

    `message` names the thing in quotes, `hint` is the next step ("" when there is none), `code` is the exit
    code of the command line.
    """

    code = 1

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class NotFound(Error):
    """The search was made and there is nothing there."""

    code = 1


class Usage(Error):
    """The call is wrong: a missing or impossible argument, a query without words."""

    code = 2


class Unreadable(Error):
    """Could not look: a workspace, channel or file is missing, unreadable or damaged."""

    code = 3


class Refused(Error):
    """Not done, and nothing changed: in conflict, unsafe, or impossible to write."""

    code = 4


class Conflict(Refused):
    """The file is no longer the text that was read."""


class Busy(Refused):
    """Another process holds a lock that is needed."""


class ModelFailed(Error):
    """A model was named and did not give a usable reply."""

    code = 5
