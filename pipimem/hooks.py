"""Agent hooks; so far the one function that starts a process of pipimem's own: what hooks leave is worked off apart."""

from __future__ import annotations

import os
import sys

from pipimem.files import own_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pipimem.workspace import Workspace

GUARD = "PIPIMEM_AT_WORK"
"""Set for everything our own background work starts: a hook that sees it does nothing, so that none fires itself."""
LOG_LIMIT = 256 * 1024


def spawn(workspace: Workspace) -> int:
    """Starts one `pipimem maintain --queued` apart from this process and its terminal; its number.

    It outlives us, waits for nobody, and writes to `.pipimem/state/queue.log`. Where another one is at work it leaves
    at once. Raises `OSError` where no process can be started.
    """
    log = os.path.join(own_folder(workspace.private(), "state"), "queue.log")
    handle = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW, 0o600)
    try:
        if os.fstat(handle).st_size > LOG_LIMIT:
            os.ftruncate(handle, 0)
        # -P: a folder named pipimem in the workspace must not be taken for us
        command = [sys.executable, "-P", "-m", "pipimem", "-w", workspace.root, "maintain", "--queued"]
        files = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, handle, 1),
            (os.POSIX_SPAWN_DUP2, handle, 2),
        ]
        environment = {**os.environ, GUARD: "1"}
        return os.posix_spawn(sys.executable, command, environment, file_actions=files, setsid=True)
    finally:
        os.close(handle)
