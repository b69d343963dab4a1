#!/usr/bin/env python3
"""Whether the proxy does what its rules say, with a real server: `python3 test_proxy.py`."""
import sys

sys.dont_write_bytecode = True

import asyncio
import contextlib
import os
import shutil
import tempfile
import unittest

from proxy import Proxy
from resp import Error, Parser, Push, encode
from server import Server


class Client:
    """Reads what comes, at once."""

    @classmethod
    async def to(cls, port):
        self = cls()
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        self.parser = Parser()
        self.came = []
        return self

    def send(self, *requests):
        self.writer.write(b"".join(encode(request.split()) for request in requests))

    async def drip(self, *requests):
        """Each byte in a packet of its own."""
        for byte in b"".join(encode(request.split()) for request in requests):
            self.writer.write(bytes([byte]))
            await self.writer.drain()
            await asyncio.sleep(0)

    async def next(self):
        while not self.came:
            data = await asyncio.wait_for(self.reader.read(50), 10)  # as small as it gets
            if not data:
                return "closed"
            self.came += [value for value, _ in self.parser.feed(data)]
        return self.came.pop(0)

    async def nothing(self, ms=200):
        with contextlib.suppress(TimeoutError):
            came = await asyncio.wait_for(self.reader.read(1), ms / 1000)
            raise AssertionError(f"{came!r} came")


class Rules(unittest.IsolatedAsyncioTestCase):
    async def asyncSetUp(self):
        asyncio.get_running_loop().set_debug(False)  # it warns of slow machines
        self.directory = tempfile.mkdtemp()
        self.server = Server("s", self.directory, {})
        await self.server.start()
        self.proxy = Proxy(self.server)
        await self.proxy.start()
        self.client = await Client.to(self.proxy.port)
        self.client.send("HELLO 3")
        self.assertIsInstance(await self.client.next(), dict)

    async def asyncTearDown(self):
        self.client.writer.close()
        await self.proxy.end()
        await self.server.kill()
        shutil.rmtree(self.directory)

    async def test_old(self):
        await self.proxy.rule({"old": "NX"})
        self.client.send("SET a 1", "SET a 2 nx", "GET a", "SET nx 3", "GET a")
        came = [await self.client.next() for _ in range(5)]
        self.assertEqual([came[0], came[2], came[4]], ["OK", "1", "1"])
        self.assertTrue(all(isinstance(came[n], Error) and "syntax error at 'NX'" in came[n] for n in (1, 3)), came)
        self.assertTrue(self.proxy.used())
        await self.proxy.close_links()
        other = await Client.to(self.proxy.port)
        other.send("SET a 4 NX")
        self.assertIsInstance(await other.next(), Error)
        other.writer.close()

    async def test_everything_goes_through(self):
        big = "x" * 30_000
        await self.client.drip("SET a 1", "SUBSCRIBE c d", "NOSUCH", "GET a", "LPUSH l 1 2", "LRANGE l 0 -1")
        self.client.writer.write(b"PING\r\n")
        self.client.send(f"SET b {big}", "GET b", "CONFIG GET maxmemory", "GET none")
        came = [await self.client.next() for _ in range(12)]
        self.assertEqual(came[0], "OK")
        self.assertEqual(came[1:3], [["subscribe", "c", 1], ["subscribe", "d", 2]])
        self.assertIsInstance(came[1], Push)
        self.assertIsInstance(came[3], Error)
        self.assertEqual(came[4:], ["1", 2, ["2", "1"], "PONG", "OK", big, {"maxmemory": "0"}, None])

    async def test_cut_among_others_and_messages(self):
        self.client.send("SUBSCRIBE c")
        await self.client.next()
        await self.proxy.rule({"cut": "set a"})
        self.client.send("PING one", "SUBSCRIBE d e", "SET a 1", "SET b 2")
        came = [await self.client.next() for _ in range(4)]
        self.assertEqual(came, ["one", ["subscribe", "d", 2], ["subscribe", "e", 3], "closed"])
        self.assertTrue(self.proxy.used())
        self.assertEqual(await self.server.say("MGET a b"), ["1", None])

    async def test_a_message_is_no_reply(self):
        self.client.send("SUBSCRIBE c")
        await self.client.next()
        await self.proxy.rule({"delay": "GET a", "ms": 300})
        self.client.send("GET a")
        await asyncio.sleep(0.05)
        await self.server.say("PUBLISH c news")
        self.assertIsNone(await self.client.next())
        self.assertEqual(await self.client.next(), ["message", "c", "news"])
        await self.proxy.rule({"cut": "PING"})
        await self.server.say("PUBLISH c more")
        self.assertEqual(await self.client.next(), ["message", "c", "more"])
        self.client.send("PING")
        self.assertEqual(await self.client.next(), "closed")

    async def test_an_error_to_subscribe_is_a_reply(self):
        await self.server.say("ACL SETUSER default resetchannels &c*")
        self.client.send("SUBSCRIBE d", "SUBSCRIBE c", "PING")
        self.assertTrue((await self.client.next()).startswith("NOPERM"))
        self.assertEqual(await self.client.next(), ["subscribe", "c", 1])
        await self.proxy.rule({"cut": "GET"})
        self.client.send("GET a")
        self.assertEqual(await self.client.next(), "PONG")
        self.assertEqual(await self.client.next(), "closed")

    async def test_resp2(self):
        client = await Client.to(self.proxy.port)
        client.send("SUBSCRIBE c d")
        self.assertEqual([await client.next(), await client.next()], [["subscribe", "c", 1], ["subscribe", "d", 2]])
        await self.server.say("PUBLISH c news")
        self.assertEqual(await client.next(), ["message", "c", "news"])
        await self.proxy.rule({"cut": "PING"})
        client.send("UNSUBSCRIBE c", "PING")
        self.assertEqual(await client.next(), ["unsubscribe", "c", 1])
        self.assertEqual(await client.next(), "closed")

    async def test_behind(self):
        self.client.send("SUBSCRIBE c")
        await self.client.next()
        await self.proxy.rule({"behind": "GET a"})
        self.client.send("PING one", "GET a", "PING two")
        self.assertEqual(await self.client.next(), "one")
        await self.client.nothing()
        self.assertFalse(self.proxy.used())
        await self.server.say("PUBLISH c news")
        self.assertEqual([await self.client.next() for _ in range(3)], [["message", "c", "news"], None, "two"])
        self.assertTrue(self.proxy.used())

    async def test_lose(self):
        await self.proxy.rule({"lose": "SET"})
        self.client.send("PING", "SET a 1")
        self.assertEqual(await self.client.next(), "PONG")
        self.assertEqual(await self.client.next(), "closed")
        self.assertEqual(await self.server.say("EXISTS a"), 0)

    async def test_drop(self):
        await self.proxy.rule({"drop": "SET"})
        self.client.send("PING", "SET a 1", "PING", "SET b 1")
        self.assertEqual(await self.client.next(), "PONG")
        await self.client.nothing()
        self.assertEqual(await self.server.say("EXISTS a b"), 2)

    async def test_hold_and_let(self):
        await self.proxy.rule("hold")
        self.client.send("SET a 1")
        await self.client.nothing()
        self.assertEqual(await self.server.say("EXISTS a"), 1)
        await self.proxy.rule("let")
        self.assertEqual(await self.client.next(), "OK")

    async def test_freeze_and_thaw(self):
        await self.proxy.rule("freeze")
        self.client.send("SET a 1")
        other = await Client.to(self.proxy.port)
        other.send("PING")
        await self.client.nothing()
        self.assertEqual(await self.server.say("EXISTS a"), 0)
        await self.proxy.rule("thaw")
        self.assertEqual(await self.client.next(), "OK")
        self.assertEqual(await other.next(), "PONG")

    async def test_orphan(self):
        self.client.send("CLIENT ID")
        number = await self.client.next()
        await self.proxy.rule("orphan")
        self.assertEqual(await self.client.next(), "closed")
        self.assertIn(f"id={number} ", await self.server.say(f"CLIENT LIST ID {number}"))

    async def test_close_refuse_and_accept(self):
        await self.proxy.rule("refuse")
        await self.proxy.rule("close")
        self.assertEqual(await self.client.next(), "closed")
        with self.assertRaises(OSError):
            await Client.to(self.proxy.port)
        await self.proxy.rule("accept")
        client = await Client.to(self.proxy.port)
        client.send("PING")
        self.assertEqual(await client.next(), "PONG")

    async def test_switch(self):
        second = Server("s2", self.directory, {})
        await second.start()
        try:
            await second.say("SET where there")
            await self.proxy.switch(second)
            self.assertEqual(await self.client.next(), "closed")
            client = await Client.to(self.proxy.port)
            client.send("GET where")
            self.assertEqual(await client.next(), "there")
        finally:
            await second.kill()


if __name__ == "__main__":
    os.environ.setdefault("RLOCK_MODULE", "target/release/librlock.so")
    unittest.main(warnings="ignore")
