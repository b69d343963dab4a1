"""The table of clients by scenarios, docs/clients-conformance.md."""
import re

HEAD = """# Which client passes which scenario

`yes`: it passes. `- (fork)`: it does not have what the scenario needs, and makes no claim to.
`known failure`: it is to pass it, and does not yet.
A column such as `python (functions)` is that client on servers without the module, by the function
library or by scripts; `- (module)` there: it cannot hold without the module. `- (no module)`: it is
about such servers.
What each scenario shows: `clients/conformance/run --list`; how they are run:
[conformance](../clients/conformance/README.md). This page is made by
`clients/conformance/run --table docs/clients-conformance.md`.
"""


def read(path):
    """{client: {scenario: cell}}, and the scenarios that have a row."""
    cells, rows, clients = {}, [], []
    if not path.exists():
        return cells, rows
    for line in path.read_text().splitlines():
        if not line.startswith("|") or set(line) <= set("|- "):
            continue
        first, *others = [cell.strip() for cell in line.strip("|").split("|")]
        if not clients:
            clients = others
            continue
        name = re.sub(r"[`*]", "", first)
        rows.append(name)
        for client, cell in zip(clients, others):
            cells.setdefault(client, {})[name] = cell
    return cells, rows


def write(path, scenarios, results):
    """Clients and scenarios that did not run now keep the cells that they had."""
    cells, _ = read(path)
    for client, its in results.items():
        cells.setdefault(client, {}).update(its)
    clients = sorted(cells)
    lines = [HEAD, "| |" + "".join(f" {client} |" for client in clients), "|---|" + "---|" * len(clients)]
    for scenario in scenarios:
        row = "".join(f" {cells[client].get(scenario.name, 'not run')} |" for client in clients)
        lines.append(f"| `{scenario.name}` |{row}")
    path.write_text("\n".join(lines) + "\n")


def rot(path, scenarios):
    """What is wrong with the table that is checked in: nothing as a rule."""
    _, rows = read(path)
    names = [scenario.name for scenario in scenarios]
    wrong = [f"{name} is no scenario any more" for name in rows if name not in names]
    wrong += [f"{name} is not in it" for name in names if name not in rows]
    if not wrong and rows != names:
        wrong = ["its rows are in another order"]
    return wrong
