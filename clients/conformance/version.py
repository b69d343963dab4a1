"""Which server it is that runs."""
import functools
import os
import subprocess

SERVER = os.environ.get("RLOCK_SERVER", "redis-server")


@functools.cache
def is_before_7():
    """Redis 6.2: it knows no functions, no sharded pub/sub, and no `cluster-port`."""
    said = subprocess.run([SERVER, "--version"], capture_output=True, text=True, check=False).stdout
    major = said.partition("v=")[2].split(".")[0]
    return major.isdigit() and int(major) < 7
