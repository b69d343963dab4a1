"""The first program: a lock with redis-py, unmodified."""
# In docs/clients.md:
import os
import socket
import uuid


def exclusively(r, key, work):
    # A fresh owner for each piece of work, which nobody else uses: with ONCE, redis-py
    # may send a command again after a network error, as it does by itself.
    owner = f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4()}"
    # Shorter than the 5 s after which redis-py gives up a reply.
    wait = ("BLOCK", 4000)
    token = r.execute_command("RLOCK.ACQUIRE", key, owner, 30000, *wait, "ONCE")
    if token is None:
        return False  # somebody else has it
    try:
        work(token)  # storage refuses a smaller token
    finally:
        r.execute_command("RLOCK.RELEASE", key, owner, "IFTOKEN", token)
    return True
# So far.
