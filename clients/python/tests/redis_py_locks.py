"""Runs redis-py's own tests of its Lock against the drop-ins.

    python tests/redis_py_locks.py FOLDER URL

FOLDER has redis-py's `tests` (the folder `tests` of its repository); URL is a server with
rlock, and is emptied. What fails has to be in EXPECTED, with its reason.
"""

from __future__ import annotations

import pathlib
import subprocess
import sys
import tempfile

STRING = "reads the lock's key as a string: here it is a hash"
SLEEPS = "counts the sleeps between tries: nobody sleeps here, the server wakes who waits"

EXPECTED = {
    "test_lock": STRING,
    "test_lock_token": STRING,
    "test_lock_token_thread_local_false": STRING,
    "test_context_manager": STRING,
    "test_blocking_timeout": SLEEPS,
    "test_context_manager_blocking_timeout": SLEEPS,
}

# Makes the tests' own `lock_class = Lock` ours, before they import it.
PLUGIN = """
import redis.lock, redis.asyncio.lock
import rlock, rlock.asyncio
redis.lock.Lock, redis.asyncio.lock.Lock = rlock.Lock, rlock.asyncio.Lock
failed, passed = [], []
def pytest_runtest_logreport(report):
    name = report.nodeid.rsplit("::", 1)[-1].split("[")[0]
    where = "asyncio" if "asyncio" in report.nodeid else "sync"
    if report.failed:
        failed.append((where, name))
    elif report.when == "call" and report.passed:
        passed.append((where, name))
def pytest_sessionfinish():
    import json, os
    json.dump([sorted(set(passed)), sorted(set(failed))], open(os.environ["SEEN"], "w"))
"""


def main(folder: str, url: str) -> int:
    import json
    import os

    with tempfile.TemporaryDirectory() as directory:
        pathlib.Path(directory, "ours.py").write_text(PLUGIN)
        seen = os.path.join(directory, "seen.json")
        paths = os.pathsep.join([directory, str(pathlib.Path(folder).resolve().parent), *sys.path])
        subprocess.run(
            [
                *(sys.executable, "-m", "pytest", "-q", "-p", "ours", "--tb=line", "--redis-url", url),
                *("-o", "asyncio_mode=auto", "-p", "no:cacheprovider", "--rootdir", folder),
                *(os.path.join(folder, "test_lock.py"), os.path.join(folder, "test_asyncio", "test_lock.py")),
            ],
            env={**os.environ, "PYTHONPATH": paths, "SEEN": seen},
            check=False,
        )
        with open(seen) as report:
            passed, failed = json.load(report)
    for where, name in failed:
        print(f"{'expected' if name in EXPECTED else 'NOT EXPECTED'}: {where}: {name}: {EXPECTED.get(name, '?')}")
    wrong = [name for _, name in failed if name not in EXPECTED]
    print(f"{len(passed)} passed, {len(failed) - len(wrong)} fail as they must, {len(wrong)} failed")
    return bool(wrong or not passed)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
