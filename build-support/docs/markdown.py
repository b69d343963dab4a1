"""What the scripts beside this read in a page: its links, its headings, and where the repository is."""

import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
FENCE = re.compile(r"^(`{3,})[^\n]*\n.*?^\1`*[ \t]*$", re.M | re.S)
CODE = re.compile(r"(`+)(?!`).+?(?<!`)\1(?!`)", re.S)
# [words](to "title"), [name]: to, href="to"
LINK = re.compile(r"\]\(\s*<?([^)\s>]+)>?(?:\s+\"[^\"]*\")?\s*\)|^\[[^\]]+\]:\s*(\S+)|<[^>]*\b(?:href|src|srcset)=\"([^\"]+)\"", re.M)
HEADING = re.compile(r"^#{1,6}\s+(.*?)\s*#*$", re.M)
NAMED = re.compile(r"<[^>]*\b(?:id|name)=\"([^\"]+)\"")


def tracked(*patterns):
    """What is or will be in the repository."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return sorted({ROOT / name for name in listed.split("\0") if name and (ROOT / name).exists()})


def blanked(pattern, text):
    """The same with blanks for what the pattern finds, so that all else stays where it is."""
    return pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)


def links(text):
    """(line, where it leads, from, to) of each link outside of code."""
    prose = blanked(CODE, blanked(FENCE, text))
    for found in LINK.finditer(prose):
        group = found.lastindex
        yield prose.count("\n", 0, found.start(group)) + 1, found[group], found.start(group), found.end(group)


def slug(heading):
    """The anchor of a heading, by forges and mdBook alike."""
    words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    words = re.sub(r"<[^>]*>|[`*]", "", words)
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def anchors(text):
    prose = blanked(FENCE, text)
    there = set(NAMED.findall(blanked(CODE, prose)))
    for found in HEADING.finditer(prose):
        name = base = slug(found[1])
        count = 0
        while name in there:
            count += 1
            name = f"{base}-{count}"
        there.add(name)
    return there


def is_outside(to):
    return re.match(r"[a-z][a-z0-9+.-]*:|//", to) is not None
