"""The README's programs are those of examples/, and run."""

import pathlib
import re
import subprocess
import sys

import pytest
from servers import Server

here = pathlib.Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("name", ["first.py", "tasks.py"])
def test_example(tmp_path, name):
    server = Server(tmp_path, port=6379) if port_is_free(6379) else pytest.skip("port 6379 is taken")
    try:
        done = subprocess.run(
            [sys.executable, here / "examples" / name], capture_output=True, text=True, timeout=120, check=True
        )
    finally:
        server.kill()
    assert re.fullmatch(r"I have the lock, with token \d+\nreleased\n", done.stdout)


def port_is_free(port):
    import socket

    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def test_the_readme_quotes_them():
    readme = (here / "README.md").read_text()
    for name in ("first.py", "tasks.py"):
        assert f"```python\n{(here / 'examples' / name).read_text()}```" in readme


def test_what_the_readme_shows_compiles():
    for code in re.findall(r"```python\n(.*?)```", (here / "README.md").read_text(), re.S):
        compile(code, "README.md", "exec", flags=__import__("ast").PyCF_ALLOW_TOP_LEVEL_AWAIT)
