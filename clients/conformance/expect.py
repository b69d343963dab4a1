"""Whether what came is what a scenario expects. The words are in the README."""
import re

from by_library import Waiters
from resp import Error


def plain(value):
    """A raw reply as a scenario sees it: an error is a map."""
    if isinstance(value, Error):
        return {"error": value.split(" ")[0], "text": str(value)}
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    return value


def fill(value, kept, number):
    """`%i`, `%n`, `%long` and `${name}` in all texts of it."""
    if isinstance(value, list):
        return [fill(one, kept, number) for one in value]
    if isinstance(value, dict):
        return {name: fill(one, kept, number) for name, one in value.items()}
    if not isinstance(value, str):
        return value
    value = value.replace("%long", "x" * 2**19)
    if number is not None:
        value = value.replace("%i", str(number)).replace("%n", str(number + 1))
    return re.sub(r"\$\{(\w+)\}", lambda found: str(kept[found.group(1)]), value)


def fits(expected, came, kept):
    """`kept` has the values that have names, and gets more."""
    if isinstance(came, Waiters):
        return came.fits(expected)
    if isinstance(expected, dict):
        if "any" in expected:
            return any(fits(one, came, kept) for one in expected["any"])
        if "has" in expected:
            return isinstance(came, str) and expected["has"] in came
        if not isinstance(came, dict):
            return False
        return all(field(name, one, came, kept) for name, one in expected.items())
    if isinstance(expected, list):
        if not isinstance(came, list) or len(came) != len(expected):
            return False
        return all(fits(one, other, kept) for one, other in zip(expected, came))
    if isinstance(expected, str) and expected[:1] in ("*", "=", "!", "<", ">"):
        return all(condition(word, came, kept) for word in expected.split())
    if expected is None or isinstance(expected, bool) or came is None or isinstance(came, bool):
        return expected is came
    return str(expected) == str(came)


def field(name, expected, came, kept):
    if name == "text" and isinstance(expected, str) and expected != "*":
        return expected in str(came.get("text", ""))
    return name in came and fits(expected, came[name], kept)


def condition(word, came, kept):
    if word == "*":
        return True
    sign, name = re.fullmatch(r"(==|!=|>=|<=|=|>|<)(\S+)", word).groups()
    if sign == "=":
        kept[name] = came
        return True
    other = kept[name] if name in kept else int(name)
    if sign in ("==", "!="):
        return (str(came) == str(other)) == (sign == "==")
    if not isinstance(came, (int, float)) or isinstance(came, bool):
        return False
    return {">": came > other, "<": came < other, ">=": came >= other, "<=": came <= other}[sign]
