"""Both faces by one interface, so that what breaks them is tested once. Several ports: by quorum."""

import asyncio
import threading

import redis
import redis.asyncio

import rlock
import rlock.asyncio


class Threads:
    def __init__(self, port, cluster=False, user=None, **options):
        user = {"username": user, "password": "x"} if user else {}
        if cluster:
            self.locks = rlock.Locks(redis.RedisCluster(host="127.0.0.1", port=port), **options)
        elif isinstance(port, list):
            self.locks = rlock.Quorum([redis.Redis(port=each) for each in port], **options)
        else:
            self.locks = rlock.Locks(redis.Redis(port=port, **user), **options)

    def acquire(self, key, **options):
        return self.locks.acquire(key, **options)

    def release(self, hold):
        hold.release()

    def renew(self, hold, lease=None):
        hold.renew(lease)

    def wanted(self, hold):
        return hold.wanted.is_set()

    def wait_wanted(self, hold, seconds):
        return hold.wanted.wait(seconds)

    def give_way(self, hold, wait=None, least=0.02):
        return hold.give_way(wait, least)

    def reason(self, hold):
        return hold.lost.reason

    def sticky(self, key, **options):
        return self.locks.sticky(key, **options)

    def use(self, sticky, body=lambda use: None):
        with sticky.use() as use:
            return body(use)

    def token(self, use):
        return use.token()

    def close_sticky(self, sticky):
        sticky.close()

    def close(self):
        self.locks.close()


class Tasks:
    """An event loop in a thread of its own."""

    def __init__(self, port, cluster=False, user=None, **options):
        user = {"username": user, "password": "x"} if user else {}
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self.thread.start()
        if cluster:
            self.locks = rlock.asyncio.Locks(redis.asyncio.RedisCluster(host="127.0.0.1", port=port), **options)
        elif isinstance(port, list):
            self.locks = rlock.asyncio.Quorum([redis.asyncio.Redis(port=each) for each in port], **options)
        else:
            self.locks = rlock.asyncio.Locks(redis.asyncio.Redis(port=port, **user), **options)

    def do(self, work):
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def acquire(self, key, **options):
        return self.do(self.locks.acquire(key, **options))

    def release(self, hold):
        self.do(hold.release())

    def renew(self, hold, lease=None):
        self.do(hold.renew(lease))

    def wanted(self, hold):
        async def ask():
            return hold.wanted.is_set()

        return self.do(ask())

    def wait_wanted(self, hold, seconds):
        async def wait():
            try:
                return await asyncio.wait_for(hold.wanted.wait(), seconds)
            except asyncio.TimeoutError:
                return False

        return self.do(wait())

    def give_way(self, hold, wait=None, least=0.02):
        return self.do(hold.give_way(wait, least))

    def reason(self, hold):
        async def ask():
            return hold.lost.reason

        return self.do(ask())

    def sticky(self, key, **options):
        return self.locks.sticky(key, **options)

    def use(self, sticky, body=None):
        """`body` runs in a thread, while the task is in the use."""

        async def use_it():
            async with sticky.use() as use:
                return await asyncio.to_thread(body, use) if body else None

        return self.do(use_it())

    def token(self, use):
        return self.do(use.token())

    def close_sticky(self, sticky):
        self.do(sticky.close())

    def close(self):
        self.do(self.locks.close())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()
