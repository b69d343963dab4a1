"""A client's driver: how it is built, and a process that speaks JSON lines."""
import asyncio
import fcntl
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess

import child

NO_PACKAGES = 75  # what a build ends with when its packages cannot be fetched


class Ended(Exception):
    """The driver's process is gone, or says what is no answer."""


class Skipped(Exception):
    """The client cannot be tried here."""


class Client:
    """What drivers/<name>/driver.json says."""

    def __init__(self, name, drivers, target, backend="module"):
        self.name = name
        self.backend = backend
        self.label = name if backend == "module" else f"{name} ({backend})"
        file = drivers / name / "driver.json"
        self.about = json.loads(file.read_text())
        self.folder = (file.parent / self.about.get("folder", ".")).resolve()
        self.built = target / name
        self.environment = {**os.environ, "RLOCK_BUILT": str(self.built)}
        self.needs = set()
        self.lock = None  # nobody builds while another run uses what was built
        # What it does not have that is no need of a whole kind of scenarios.
        lacks = self.about.get("lacks", {})
        self.lacks = {name: why for why, names in lacks.items() for name in names}
        self.known_failures = self.about.get("known_failures", {})  # {scenario: why it fails as yet}

    def words(self, which):
        return [word.replace("$RLOCK_BUILT", str(self.built)) for word in self.about[which]]

    def look_for_backend(self):
        if self.backend not in self.about.get("backends", ["module"]):
            raise Skipped(f"it has not the backend {self.backend}")

    def look_for_tools(self):
        for command, needed in self.about.get("toolchain", {}).items():
            if not shutil.which(command):
                raise Skipped(f"there is no {command}")
            found = version(command)
            if numbers(found) < numbers(needed):
                raise Skipped(f"it needs {command} {needed}, and this is {found or 'of no known version'}")

    def build(self):
        """Fails with Ended."""
        self.built.mkdir(parents=True, exist_ok=True)
        if "build" not in self.about:
            return
        self.lock = open(self.built / "lock", "w", encoding="ascii")
        fcntl.flock(self.lock, fcntl.LOCK_EX)
        log = self.built / "build.log"
        with open(log, "wb") as out:
            done = subprocess.run(
                self.words("build"), cwd=self.folder, env=self.environment, stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, preexec_fn=child.dies_with_us, check=False,
            )
        if done.returncode == NO_PACKAGES:
            raise Skipped(f"its packages could not be fetched, see {log}")
        if done.returncode:
            raise Ended("\n".join(["it does not build:", *child.tail(log)]))
        fcntl.flock(self.lock, fcntl.LOCK_SH)

    def let_go(self):
        if self.lock:
            self.lock.close()


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)][:3]


def version(command):
    for words in (["--version"], ["version"], ["-version"]):
        done = subprocess.run(
            [command, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False, env={**os.environ, "GOTOOLCHAIN": "local"},
        )
        found = re.search(rb"\d+(\.\d+)+|\b\d+\b", done.stdout)
        if not done.returncode and found:
            return found.group().decode()
    return ""


class Driver:
    """A process of it."""

    def __init__(self, name, client, directory):
        self.name = name
        self.client = client
        self.errors = os.path.join(directory, f"{name}.stderr")
        self.directory = directory
        self.ids = itertools.count(1)
        self.answers = {}
        self.events = []
        self.changed = asyncio.Condition()
        self.process = None
        self.wrong = None  # why it can no longer be talked to
        self.reading = None

    async def start(self):
        pipe = asyncio.subprocess.PIPE
        with open(self.errors, "wb") as errors:
            self.process = await child.spawn(
                self.client.words("run"), cwd=self.client.folder, env=self.client.environment,
                stdin=pipe, stdout=pipe, stderr=errors, limit=1 << 24,
            )
        self.reading = asyncio.create_task(self.read())

    async def read(self):
        try:
            while line := await self.process.stdout.readline():
                said = json.loads(line)
                if "event" in said:
                    async with self.changed:
                        self.events.append(said)
                        self.changed.notify_all()
                    continue
                answer = self.answers.get(said["id"])
                if answer is None or answer.done():
                    raise Ended(f"an answer that nobody waits for: {said}")
                answer.set_result(said)
            self.wrong = Ended(f"driver {self.name} has ended")
        except (ValueError, KeyError, TypeError, Ended) as error:
            self.wrong = Ended(f"driver {self.name} spoke wrongly: {error}")
        for answer in self.answers.values():
            if not answer.done():
                answer.set_exception(self.wrong)
                answer.exception()  # it may be that nobody asks
        async with self.changed:
            self.changed.notify_all()

    def request(self, what, words):
        """Its id, and a future with the answer."""
        number = next(self.ids)
        answer = self.answers[number] = asyncio.get_running_loop().create_future()
        if self.wrong:
            raise self.wrong
        line = json.dumps({"id": number, "do": what, **words})
        self.process.stdin.write(line.encode() + b"\n")
        return number, answer

    async def end(self, within=30):
        """Closes its input, and gives what it ended with; None if it did not end."""
        if self.process.stdin.can_write_eof():
            self.process.stdin.close()
        try:
            async with asyncio.timeout(within):
                return await self.process.wait()
        except TimeoutError:
            return None

    def signal(self, number):
        self.process.send_signal(number)

    async def kill(self):
        if self.process:
            await child.end(self.process)
        if self.reading:
            self.reading.cancel()
            await asyncio.gather(self.reading, return_exceptions=True)
