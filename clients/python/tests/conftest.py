import pytest
import redis
from faces import Tasks, Threads
from servers import Proxy, Server

import rlock


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Shared by the tests of a file, each with keys of its own."""
    server = Server(tmp_path_factory.mktemp("server"))
    yield server
    server.kill()


@pytest.fixture
def own_server(tmp_path):
    server = Server(tmp_path)
    yield server
    server.go_on()
    server.kill()


@pytest.fixture
def proxy(server):
    proxy = Proxy(server.port)
    yield proxy
    proxy.close()


@pytest.fixture
def key(request):
    return request.node.name.replace("[", "-").replace("]", "")


@pytest.fixture
def locks(server):
    with rlock.Locks(redis.Redis(port=server.port)) as locks:
        yield locks


@pytest.fixture(params=[Threads, Tasks])
def face(request):
    """Opens locks: of threads, and of tasks."""
    opened = []

    def open_(port, **options):
        opened.append(request.param(port, **options))
        return opened[-1]

    yield open_
    for one in opened:
        one.close()
