"""Scenarios as data, and how their steps are carried out."""
import asyncio
import copy
import json
import re
import signal

from by_library import BACKEND
from driver import Ended
from expect import fill, fits, plain
from server import Down
from world import World

SOON = 30_000  # ms: for whatever must come
BOUND = 120  # s: for a scenario that does not say it
NOTHING = object()


class Failed(Exception):
    """A step came out otherwise."""


class Scenario:
    def __init__(self, group, about, client=None):
        self.client = client  # the only one that is tried by it
        self.name = f"{group}/{about['name']}"
        self.shows = about["shows"]
        self.needs = about.get("needs", [])
        self.of_server = about.get("server", [])
        self.of_module = about.get("module")  # why it needs the module; False: it needs a server without it
        self.bound = about.get("bound", BOUND)
        self.steps = about["steps"]


def load(folder):
    """All of them, in the order of their groups in order.json."""
    found = []
    for group in json.loads((folder / "order.json").read_text()):
        for about in json.loads((folder / f"{group}.json").read_text()):
            found.append(Scenario(group, about))
    names = [scenario.name for scenario in found]
    assert len(set(names)) == len(names), "two scenarios have one name"
    return found


def load_own(drivers, clients):
    """Those that a driver has for its client alone."""
    found = []
    for client in clients:
        file = drivers / client / "scenarios.json"
        if file.exists():
            found += [Scenario(client, about, client) for about in json.loads(file.read_text())]
    return found


class Run:
    """A scenario with a client; `failure` says what went wrong."""

    def __init__(self, scenario, client, directory):
        self.scenario = scenario
        self.world = World(client, str(directory))
        self.step = "before the first step"
        self.failure = None

    async def run(self):
        try:
            async with asyncio.timeout(self.scenario.bound):
                await self.steps(self.scenario.steps, None)
                await self.leaves_nothing()
        except TimeoutError:
            self.failure = f"not over after {self.scenario.bound} s"
        except (Failed, Down, Ended, ConnectionError) as error:
            self.failure = str(error) or repr(error)
        except Exception as error:  # the scenario itself is wrong
            self.failure = f"{type(error).__name__}: {error}"
        finally:
            await self.world.end()

    async def steps(self, steps, number):
        for step in steps:
            if step[0] == "repeat":
                for again in range(step[1]):
                    await self.steps(step[2], again)
                continue
            if step[0] == "where":
                await self.steps(step[2] if step[1] == BACKEND else (step[3:] or [[]])[0], number)
                continue
            step = fill(copy.deepcopy(step), self.world.kept, number)
            self.step = json.dumps(step)
            await self.do(*step)

    async def do(self, word, *rest):
        by_name = getattr(self, f"do_{word}", None)
        if by_name:
            await by_name(*rest)
        elif word in self.world.drivers:
            await self.request(word, *rest)
        else:
            raise ValueError(f"there is no step or driver {word!r}")

    # What must come

    def check(self, expected, came):
        if expected is not NOTHING and not fits(expected, came, self.world.kept):
            raise Failed(f"came:     {json.dumps(came)[:2000]}\nexpected: {json.dumps(expected)}")

    def check_answer(self, expected, answer):
        """Of a driver's answer: with the word `error` all of it, else what is ok."""
        if isinstance(expected, dict) and ("error" in expected or "any" in expected):
            flat = {**answer, **(answer.get("ok") or {})}
            return self.check(expected, flat)
        if "ok" not in answer:
            expected = {} if expected is NOTHING else expected
            raise Failed(f"came:     {json.dumps(answer)[:2000]}\nexpected: ok {json.dumps(expected)}")
        return self.check(expected, answer["ok"])

    @staticmethod
    async def within(ms, what):
        try:
            async with asyncio.timeout(ms / 1000):
                return await what
        except TimeoutError:
            raise Failed(f"came:     nothing within {ms} ms") from None

    # Requests of drivers

    async def request(self, driver, what, words=None, expected=NOTHING, options=None):
        number, answer = self.world.request(driver, what, words or {})
        if isinstance(expected, str) and expected.startswith("later "):
            name = expected.removeprefix("later ")
            self.world.later[name], self.world.ids[name] = answer, number
            return
        within = (options or {}).get("within", SOON)
        self.check_answer(expected, await self.within(within, answer))

    async def do_expect(self, name, expected=NOTHING, options=None):
        answer = await self.within((options or {}).get("within", SOON), asyncio.shield(self.world.later[name]))
        if name in self.world.ids:
            self.check_answer(expected, answer)
        else:
            self.check(expected, plain(answer))

    async def do_silent(self, name, ms):
        done, _ = await asyncio.wait([self.world.later[name]], timeout=ms / 1000)
        if done:
            raise Failed(f"came:     {done.pop().result()}\nexpected: nothing for {ms} ms")

    async def do_event(self, name, expected, options=None):
        within = (options or {}).get("within", SOON)
        driver = self.world.drivers[name]

        def come():
            for event in driver.events:
                if fits(expected, event, dict(self.world.kept)):
                    fits(expected, event, self.world.kept)
                    driver.events.remove(event)
                    return True
            if driver.wrong:
                raise driver.wrong
            return False

        try:
            async with asyncio.timeout(within / 1000), driver.changed:
                await driver.changed.wait_for(come)
        except TimeoutError:
            came = json.dumps(driver.events[:10])
            raise Failed(f"came:     {came} within {within} ms\nexpected: {json.dumps(expected)}") from None

    async def do_no_event(self, name, expected, ms):
        await asyncio.sleep(ms / 1000)
        for event in self.world.drivers[name].events:
            if fits(expected, event, dict(self.world.kept)):
                raise Failed(f"came:     {json.dumps(event)}\nexpected: no such event")

    # Servers

    async def do_server(self, what, text=None, expected=NOTHING):
        if isinstance(what, dict):
            return await self.world.start_server(**what)
        if isinstance(expected, str) and expected.startswith("later "):
            return self.world.say_later(expected.removeprefix("later "), what, text)
        came = plain(await self.world.say(what, text))
        if isinstance(came, dict) and "error" in came and expected is NOTHING:
            raise Failed(f"came:     {came['text']}\nexpected: no error")
        return self.check(expected, came)

    async def do_until(self, name, text, expected, options=None):
        within = (options or {}).get("within", SOON)
        came = None
        try:
            async with asyncio.timeout(within / 1000):
                while True:
                    came = await self.ask(name, text)
                    if fits(expected, came, self.world.kept):
                        return
                    await asyncio.sleep(0.01)
        except TimeoutError:
            raise Failed(
                f"came:     {json.dumps(came)[:2000]}, still after {within} ms\nexpected: {json.dumps(expected)}"
            ) from None

    async def ask(self, name, text):
        """A raw command, or what a driver says to a request that has no words."""
        if name not in self.world.drivers:
            return plain(await self.world.say(name, text))
        answer = await self.world.request(name, text, {})[1]
        return answer.get("ok", answer)

    async def do_load(self, name, what):
        await self.world.load(name, what)

    async def do_calls(self, name, expected, command="(?:fcall|eval|evalsha)(?:_ro)?"):
        """How often the library, or the command, was called since CONFIG RESETSTAT."""
        stats = await self.world.servers[name].say("INFO commandstats")
        calls = re.findall(rf"^cmdstat_{command}:calls=(\d+)", stats, re.MULTILINE)
        self.check(expected, sum(map(int, calls)))

    async def do_keeps(self, name, text, expected, ms):
        end = asyncio.get_running_loop().time() + ms / 1000
        while asyncio.get_running_loop().time() < end:
            self.check(expected, await self.ask(name, text))
            await asyncio.sleep(0.05)

    async def do_move(self, name, key, node):
        await self.world.clusters[name].move(key, self.world.servers[node])

    async def do_replicate(self, name, master):
        await self.world.servers[name].say(f"REPLICAOF 127.0.0.1 {self.world.servers[master].port}")

    async def do_restart(self, name):
        await self.world.servers[name].kill()
        await self.world.servers[name].start()

    def stoppable(self, name):
        return self.world.drivers.get(name) or self.world.servers[name]

    async def do_stop(self, name):
        self.stoppable(name).signal(signal.SIGSTOP)

    async def do_cont(self, name):
        self.stoppable(name).signal(signal.SIGCONT)

    async def do_kill(self, name):
        if name in self.world.drivers:
            await self.world.drivers.pop(name).kill()
        else:
            await self.world.servers[name].kill()

    # Proxies

    async def do_proxy(self, about):
        await self.world.start_proxy(**about)

    async def do_rule(self, name, what):
        await self.world.proxies[name].rule(what)

    async def do_used(self, name):
        async def used():
            while not self.world.proxies[name].used():
                await asyncio.sleep(0.01)

        await self.within(SOON, used())

    async def do_switch(self, name, server):
        await self.world.proxies[name].switch(self.world.servers[server])

    # Drivers

    async def do_driver(self, *names):
        for name in names:
            await self.world.start_driver(name)

    async def do_end(self, name):
        """Closes a driver's input: it must end with 0."""
        code = await self.world.drivers[name].end()
        if code != 0:
            came = "it did not end" if code is None else f"it ended with {code}"
            raise Failed(f"came:     {came}\nexpected: driver {name} ends with 0 when its input does")
        self.world.drivers.pop(name).reading.cancel()

    async def do_sum(self, file, names):
        """The number in the file is the sum of what is kept by these names."""
        with open(self.world.file(file), encoding="ascii") as read:
            came = read.read()
        self.check(sum(self.world.kept[name] for name in names), came)

    async def leaves_nothing(self):
        self.step = "at the end: drivers end, and leave nothing held"
        for name in list(self.world.drivers):
            await self.do_end(name)
        await self.world.stop_waiting()
        end = asyncio.get_running_loop().time() + SOON / 1000
        while left := await self.world.of_drivers():
            if asyncio.get_running_loop().time() > end:
                raise Failed(f"came:     {left[:5]}\nexpected: nothing that is held or waited for")
            await asyncio.sleep(0.05)
