#!/usr/bin/env python3
"""Whether the runner sees a server without the module as one with it, with real servers."""
import sys

sys.dont_write_bytecode = True

import os
import tempfile
import unittest

import by_library
from expect import fits, plain
from resp import Error
from world import World


class Calls(unittest.TestCase):
    def test_a_call_is_the_command_that_it_stands_for(self):
        for call, command in (
            ("FCALL rlock1_acquire 1 jobs o 1000 ONCE", "RLOCK.ACQUIRE jobs o 1000 ONCE"),
            ("fcall rlock1_acquire 4 jobs redisson_lock_token:{jobs} rlock1_queue:{jobs} rlock1_places:{jobs} o 1000",
             "RLOCK.ACQUIRE jobs o 1000"),
            ("FCALL rlock1_release 3 rlock1_queue:{a}b {a}b rlock1_places:{a}b o", "RLOCK.RELEASE {a}b o"),
            ("EVALSHA 00ff 1 jobs rlock1_release o IFHELD", "RLOCK.RELEASE jobs o IFHELD"),
            ("EVALSHA 00ff 1 jobs CLUSTER rlock1_renew o 1000", "RLOCK.RENEW jobs o 1000"),
            ("FCALL rlock1_macquire 3 x y rlock1_queue:{y} o 1000", "RLOCK.MACQUIRE 2 x y o 1000"),
            ("EVALSHA 00ff 0", "EVALSHA 00ff 0"),
            ("FCALL_RO rlock1_version 0", "FCALL_RO rlock1_version 0"),
            ("PING", "PING"),
        ):
            self.assertEqual(by_library.as_command(call.split()), command.split())


class Servers(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        self.directory = tempfile.TemporaryDirectory()
        self.world = World(None, self.directory.name)

    async def asyncTearDown(self):
        await self.world.end()
        self.directory.cleanup()

    async def says(self, text, expected):
        came = plain(await self.world.say("s", text))
        self.assertTrue(fits(expected, came, self.world.kept), f"{text}: {came}")

    async def start(self, **kind):
        await self.world.start_server(module=False, **kind)

    async def by(self, backend):
        was, by_library.BACKEND = by_library.BACKEND, backend
        self.addCleanup(setattr, by_library, "BACKEND", was)
        await self.start()
        await self.says("RLOCK.ACQUIRE jobs raw1 60000", ">0 =t")
        await self.says("RLOCK.INFO jobs", {"mode": "exclusive", "waiters": 0, "holders": [{"owner": "raw1", "holds": 1, "token": "==t"}]})
        await self.says("RLOCK.ACQUIRE jobs raw2 60000", None)
        await self.says("DBSIZE", 1)
        self.assertEqual(await by_library.owners(self.world.servers["s"]), ["raw1 holds jobs on s"])
        await self.says("RLOCK.RELEASE jobs raw1", 0)
        await self.says("DBSIZE", 0)
        await self.says("RLOCK.INFO jobs", {"mode": "free"})
        await self.says("RLOCK.MACQUIRE 2 x y raw1 60000", ">t =t")
        await self.says("RLOCK.INFO y", {"holders": [{"owner": "raw1", "token": "==t"}]})
        await self.says("RLOCK.FORCE y", 1)
        await self.says("RLOCK.RENEW y raw1 1000", {"error": "NOTHELD"})
        await self.says("RLOCK.MRELEASE 1 x raw1", 1)

    async def test_functions(self):
        await self.by("functions")
        self.assertEqual(await self.world.servers["s"].say("FUNCTION LIST"), [])

    async def test_functions_that_are_loaded(self):
        load = by_library.LIBRARY.read_text()
        started = self.start

        async def start_and_load():
            await started()
            await self.world.servers["s"].say(["FUNCTION", "LOAD", load])

        self.start = start_and_load
        await self.by("functions")

    async def test_script(self):
        await self.by("script")

    async def test_no_functions_for_anybody_else(self):
        was, by_library.BACKEND = by_library.BACKEND, "script"
        self.addCleanup(setattr, by_library, "BACKEND", was)
        await self.start(config={"user": "bob on nopass ~* &* +@all"})
        for user in ("default", "bob"):
            came = await self.world.servers["s"].say(f"ACL DRYRUN {user} FCALL f 0")
            self.assertIn("no permissions", came)
            self.assertEqual(await self.world.servers["s"].say(f"ACL DRYRUN {user} EVALSHA f 0"), "OK")

    async def test_places_are_waiters(self):
        await self.start()
        await self.says("RLOCK.ACQUIRE jobs raw1 60000", ">0")
        for name in ("one", "two"):
            await by_library.run(self.world.servers["s"], "rlock1_acquire", ["jobs"], ["o", 1000, "PLACE", name, 900])
        self.world.drivers = dict.fromkeys("abc")
        for count, does in ((0, False), (1, True), (2, True), (3, False)):
            came = await self.world.say("s", "RLOCK.INFO jobs")
            self.assertEqual(fits({"waiters": count}, came, {}), does, count)
        self.world.drivers = {"a": None}
        came = await self.world.say("s", "RLOCK.INFO jobs")
        self.assertTrue(fits({"waiters": 20}, came, {}))
        self.world.drivers = {}

    async def test_a_cluster(self):
        for backend in ("functions", "script"):
            was, by_library.BACKEND = by_library.BACKEND, backend
            self.addCleanup(setattr, by_library, "BACKEND", was)
            await self.world.start_server(name=backend, cluster=3, module=False)
            came = [await self.world.say(backend, f"RLOCK.ACQUIRE {key} raw1 60000") for key in "abc"]
            self.assertTrue(all(isinstance(token, int) for token in came), came)
            await by_library.run(self.world.servers[f"{backend}1"], "rlock1_acquire", ["b"], ["o", 1000, "PLACE", "one", 60000])
            await self.world.clusters[backend].move("b", self.world.servers[f"{backend}2"])
            came = await self.world.say(backend, "RLOCK.INFO b")
            self.assertTrue(fits({"mode": "exclusive", "waiters": 1, "holders": [{"owner": "raw1", "token": "*"}]}, came, {}), came)
            self.assertEqual(await by_library.owners(self.world.servers[f"{backend}1"]), [])
            self.assertEqual(await self.world.say(backend, "RLOCK.RELEASE b raw1"), 0)

    async def test_no_counterpart(self):
        await self.start()
        for text in ("RLOCK.WAITERS jobs", "RLOCK.TOP", "RLOCK.ACQUIRE jobs raw 1 BLOCK 0", "INFO rlock",
                     "ACL SETUSER default -rlock.release", "CONFIG SET rlock.grant-after 0"):
            with self.assertRaises(by_library.NoCounterpart):
                await self.world.say("s", text)

    async def test_a_refusal(self):
        await self.start()
        await self.says("SET jobs x", "OK")
        self.assertIsInstance(await self.world.say("s", "RLOCK.INFO jobs"), Error)


if __name__ == "__main__":
    os.environ.setdefault("RLOCK_MODULE", "")
    unittest.main()
