"""Over TLS, where reading and writing are not independent of each other."""

import asyncio
import shutil
import subprocess

import pytest
import redis
import redis.asyncio
import rlock
import rlock.asyncio
from servers import InThread, Server, free_port, until


@pytest.fixture(scope="module")
def tls(tmp_path_factory):
    directory, port = tmp_path_factory.mktemp("tls"), free_port()
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl")
    words = "openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem -out cert.pem -days 2 -subj /CN=localhost"
    subprocess.run(words.split(), cwd=directory, check=True, capture_output=True)
    files = ["--tls-cert-file", directory / "cert.pem", "--tls-key-file", directory / "key.pem"]
    files += ["--tls-ca-cert-file", directory / "cert.pem", "--tls-auth-clients", "no"]
    try:
        server = Server(directory, "--tls-port", port, *files)
    except AssertionError:
        pytest.skip("this server was built without TLS")
    server.tls = port
    yield server
    server.kill()


def test_threads(tls):
    with rlock.Locks(redis.Redis(port=tls.tls, ssl=True, ssl_cert_reqs="none")) as locks:
        stop, done = [], []

        def work(number):
            while not stop:
                with locks.hold(f"k{number % 3}", wait=20):
                    done.append(number)

        threads = [InThread(lambda number=number: work(number)) for number in range(6)]
        assert until(lambda: len(done) > 2000 and len(set(done)) == 6)
        hold = locks.acquire("lost")
        tls.say("RLOCK.FORCE lost")
        assert hold.lost.wait(10)
        stop.append(True)
        for thread in threads:
            thread.result()


def test_tasks(tls):
    async def main():
        client = redis.asyncio.Redis(port=tls.tls, ssl=True, ssl_cert_reqs="none")
        async with rlock.asyncio.Locks(client) as locks:

            async def work(number):
                for _ in range(50):
                    async with locks.hold(f"k{number % 3}", wait=20):
                        pass

            await asyncio.gather(*(work(number) for number in range(6)))

    asyncio.run(main())
