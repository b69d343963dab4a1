"""Servers without the module, and what the tests of them share: pytest finds the fixtures by their import."""

import contextlib

import pytest
import redis
from servers import Server

import rlock._backend

LOAD = ("--enable-module-command", "yes")


class Plain(Server):
    words = ()

    def __init__(self, directory, *config, backend="functions"):
        super().__init__(directory, *config)
        self.backend = backend
        if backend == "script":
            with contextlib.suppress(redis.ResponseError):  # Redis 6.2 has none
                self.say("ACL SETUSER default -fcall -fcall_ro")
        text = rlock._backend.script()[0]
        self.admin.script_load(text)  # the runner's own way, whoever has the functions
        self.flushes = ["FUNCTION FLUSH", "SCRIPT FLUSH"] if backend == "functions" else ["SCRIPT FLUSH"]

    def call(self, verb, key, *words):
        return self.admin.eval(rlock._backend.script()[0], 1, key, f"rlock1_{verb}", *words)

    def holders(self, key):
        return self.call("info", key)[b"holders"]

    def is_free(self, key):
        return self.call("info", key)[b"mode"] == b"free"

    def places(self, key):
        return self.admin.zcard(f"rlock1_queue:{{{key}}}")


@pytest.fixture(scope="module", params=["functions", "script"])
def server(request, tmp_path_factory):
    server = Plain(tmp_path_factory.mktemp("server"), backend=request.param)
    yield server
    server.kill()


@pytest.fixture
def plain(tmp_path):
    server = Plain(tmp_path, *LOAD)
    yield server
    server.go_on()
    server.kill()
