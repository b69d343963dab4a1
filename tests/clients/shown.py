#!/usr/bin/env python3
"""Whether docs/clients.md shows the marked pieces of the programs here as they are."""
import pathlib
import re
import sys
import textwrap

here = pathlib.Path(__file__).parent
page = (here / "../../docs/clients.md").read_text()
marked = re.compile(r"^ *\S+ In docs/clients\.md:\n(.*?)^ *\S+ So far\.\n", re.M | re.S)
files = [file for kind in ("py", "js", "go", "java", "rs") for file in here.rglob(f"*.{kind}")]
pieces = [(file, text) for file in files if file != pathlib.Path(__file__) for text in marked.findall(file.read_text())]
missing = [file for file, text in pieces if textwrap.dedent(text).strip() not in page]
for file in missing:
    print(f"not ok: docs/clients.md does not show {file.relative_to(here)} as it is")
print(f"ok: docs/clients.md shows {len(pieces) - len(missing)} pieces of {len(pieces)}")
sys.exit(bool(missing) or not pieces)
