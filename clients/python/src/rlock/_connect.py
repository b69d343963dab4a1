"""Connections of rlock's own, made as the program's client makes its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from redis import exceptions

from ._backend import Backend

# A session retries by itself, is asked by its own heartbeat, and takes no other messages.
_NOT_OURS = (
    "client_name",
    "health_check_interval",
    "himport_registry",
    "maint_notifications_config",
    "maint_notifications_pool_handler",
    "oss_cluster_maint_notifications_handler",
    "retry",
    "retry_on_error",
    "retry_on_timeout",
)


def maker(pool: Any, timeout: float) -> Callable[[], Any]:
    """Makes connections (not connected yet) as `pool`, or a node of a cluster, makes them."""

    def make() -> Any:
        options = {name: value for name, value in pool.connection_kwargs.items() if name not in _NOT_OURS}
        options.update(protocol=3, socket_timeout=timeout, socket_connect_timeout=timeout)
        return pool.connection_class(**options)

    return make


def refusal(error: BaseException) -> tuple[str, str] | None:
    """The code and text of an error that no other attempt will mend; None: try again."""
    if not isinstance(error, (exceptions.AuthenticationError, exceptions.ResponseError)):
        return None
    code = getattr(error, "status_code", None)
    text = str(error)
    if not code and isinstance(error, exceptions.AuthenticationError):
        code = "WRONGPASS"  # older versions cut it off
    if not code:
        code, _, text = text.partition(" ")
    return str(code), text


def needed(backend: Any) -> Backend | None:
    if backend not in (None, "module"):
        raise ValueError(f'backend: "module", or nothing (whatever the server has), not {backend!r}')
    return "module" if backend else None


def checked(client: Any, kinds: tuple[type, ...], what: str, other: str) -> None:
    """Listener at once, and not by an error from inside."""
    if not isinstance(client, kinds):
        names = " or ".join(f"{kind.__module__.split('.client')[0].split('.cluster')[0]}.{kind.__name__}" for kind in kinds)
        hint = ""
        if isinstance(client, (str, bytes)):
            hint = ": make it by redis.from_url()"
        elif type(client).__module__.partition(".")[0] == "redis":
            hint = f": that is for {other}"
        raise TypeError(f"{what} is given a {names}, not {client!r}{hint}")
