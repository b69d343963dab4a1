"""Processes that end with this one, however it ends."""
import asyncio
import ctypes
import os
import signal

libc = ctypes.CDLL(None)


def dies_with_us():
    libc.prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    # Who runs this in the background may have had it ignored, and that is inherited.
    signal.signal(signal.SIGINT, signal.SIG_DFL)


async def spawn(words, **options):
    """In a process group of its own, for what it starts to be ended with it."""
    return await asyncio.create_subprocess_exec(
        *map(str, words), preexec_fn=dies_with_us, start_new_session=True, **options
    )


async def end(process):
    """Ends it and its group, and waits for it."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    await process.wait()


def tail(path, lines=25):
    """The last lines of a log; of a server's without those of its start."""
    try:
        with open(path, "rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - 20000))
            said = file.read().decode(errors="replace").splitlines()
    except OSError:
        return []
    ready = [n for n, line in enumerate(said) if "Ready to accept connections" in line]
    said = [line for line in said[ready[-1] + 1 if ready else 0 :] if "tcp-keepalive" not in line]
    return said[-lines:]
