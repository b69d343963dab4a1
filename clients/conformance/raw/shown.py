#!/usr/bin/env python3
"""Whether pages show programs as they are: docs/clients.md the marked pieces of those here,
and the READMEs of the project and of each client the examples that it says it quotes."""
import pathlib
import re
import sys
import textwrap

here = pathlib.Path(__file__).resolve().parent
clients = here.parent.parent


def in_the_docs():
    """The pieces that docs/clients.md is to show: what is wrong, and how many there are."""
    page = (clients.parent / "docs/clients.md").read_text()
    marked = re.compile(r"^ *\S+ In docs/clients\.md:\n(.*?)^ *\S+ So far\.\n", re.M | re.S)
    files = [file for kind in ("py", "js", "go", "java", "rs") for file in here.rglob(f"*.{kind}")]
    pieces = [(file, text) for file in files if file != here / "shown.py" for text in marked.findall(file.read_text())]
    wrong = [
        f"docs/clients.md does not show {file.relative_to(here)} as it is"
        for file, text in pieces
        if textwrap.dedent(text).strip() not in page
    ]
    return wrong, len(pieces)


def holds(program, block):
    """Whether the block is a run of the program's lines, which may stand deeper there."""
    program, block = program.splitlines(), block.splitlines()
    for start in range(len(program) - len(block) + 1):
        lines = textwrap.dedent("\n".join(program[start : start + len(block)])).splitlines()
        if [line.rstrip() for line in lines] == [line.rstrip() for line in block]:
            return True
    return False


def in_a_readme(readme):
    """The blocks of a README after a line <!-- from FILE -->: what is wrong, and how many."""
    name = readme.relative_to(clients.parent)
    quoted = re.compile(r"^<!-- from (\S+) -->\n(```+)[^\n]*\n(.*?)^\2\n", re.M | re.S)
    text = readme.read_text() + "\n"
    wrong, blocks = [], quoted.findall(text)
    for file, _, block in blocks:
        file = readme.parent / file
        if not file.is_file():
            wrong.append(f"{name} quotes {file.name}, which is not there")
        elif not block.strip() or not holds(file.read_text(), textwrap.dedent(block)):
            wrong.append(f"{name} does not quote {file.relative_to(readme.parent)} as it is")
    if len(blocks) != text.count("<!-- from "):
        wrong.append(f"{name} says <!-- from ... --> where no block follows")
    if not blocks and (readme.parent / "examples").is_dir():
        wrong.append(f"{name} quotes no example")
    return wrong, len(blocks)


wrong, pieces = in_the_docs()
if not pieces:
    wrong.append("no piece is marked for docs/clients.md")
readmes = [clients.parent / "README.md"]
readmes += [file for file in sorted(clients.glob("*/README.md")) if file.parent != here.parent]
for readme in readmes:
    more, blocks = in_a_readme(readme)
    wrong += more
    pieces += blocks
for line in wrong:
    print(f"not ok: {line}")
if not wrong:
    print(f"ok: {1 + len(readmes)} pages show {pieces} pieces of programs as they are")
sys.exit(bool(wrong))
