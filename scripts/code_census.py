"""Counts the code of truerank by syntax tree, to compare two states of it.

    python scripts/code_census.py [FOLDER ...]
    python scripts/code_census.py --budget budget.toml [--lower | --raise]

Without folders all of `src/truerank` is counted; with several, each of them and all together. A budget holds the
largest number of modules, lines and lines of code of each package.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent / "src"
HEAD = """\
# The most modules, lines and lines of code of each package. A change may raise a number only in the commit of a
# feature, and says what for. `python scripts/code_census.py --budget budget.toml --lower` takes what was saved.
"""
KINDS = ("code", "docstrings", "signatures", "imports", "comments", "blank")


def kinds_of(path: Path) -> Counter[str]:
    """Lines of a module by kind."""
    text = path.read_text(encoding="utf-8")
    lines, tree = text.splitlines(), ast.parse(text)
    kind = ["code"] * len(lines)
    for number, line in enumerate(lines):
        stripped = line.strip()
        kind[number] = "blank" if not stripped else "comments" if stripped.startswith("#") else "code"
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            kind[node.lineno - 1 : node.end_lineno] = ["imports"] * ((node.end_lineno or node.lineno) - node.lineno + 1)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            last = max(node.lineno, node.body[0].lineno - 1)
            kind[node.lineno - 1 : last] = ["signatures"] * (last - node.lineno + 1)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Module) and node.body:
            first = node.body[0]
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
            ):
                end = first.end_lineno or first.lineno
                kind[first.lineno - 1 : end] = ["docstrings"] * (end - first.lineno + 1)
    return Counter(kind)


def module_of(path: Path) -> str:
    """The dotted name of a module."""
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path, known: frozenset[str]) -> set[str]:
    """The modules of truerank that a module imports, also inside functions; not those for type checkers only."""
    found: set[str] = set()
    todo: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while todo:
        node = todo.pop()
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            continue
        names = []
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in known else node.module for name in names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found.update(name for name in names if name in known)
        todo.extend(ast.iter_child_nodes(node))
    return found - {module_of(path)}


def circles(imports: Mapping[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import one another (Tarjan's strongly connected components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(imports[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            group = []
            while not group or group[-1] != name:
                group.append(stack.pop())
            if len(group) > 1:
                found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for name in sorted(imports):
        if name not in index:
            visit(name)
    return found


def classes_of(path: Path) -> Iterator[str]:
    """Names of the public classes of a module."""
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name


def packages() -> dict[str, list[Path]]:
    """The modules of each package, those of audits apart; by name."""
    found: dict[str, list[Path]] = {}
    for path in sorted((ROOT / "truerank").rglob("*.py")):
        folders = path.relative_to(ROOT / "truerank").parts[:-1]
        found.setdefault(".".join(folders[: 2 if folders[:1] == ("audits",) else 1]) or ".", []).append(path)
    return found


def sizes(paths: list[Path]) -> dict[str, int]:
    """What a budget holds."""
    counts = sum(map(kinds_of, paths), Counter[str]())
    return {"modules": len(paths), "lines": sum(counts[kind] for kind in KINDS), "code": counts["code"]}


def spend(budget: Path, *, lower: bool, higher: bool) -> int:
    """Compares the code with a budget; the exit code is 1 where a package is larger, or imports go in circles.

    Args:
        budget: a table of each package, and one of all.
        lower: write what is there where it is less, and packages that have no budget yet.
        higher: write what is there: for the commit of a feature.
    """
    allowed = tomllib.loads(budget.read_text(encoding="utf-8")) if budget.is_file() else {}
    found = {name: sizes(paths) for name, paths in packages().items()}
    found = {"all": {key: sum(size[key] for size in found.values()) for key in ("modules", "lines", "code")}, **found}
    above = [
        f"{name}: {size[key]:,} {key}, and {budget.name} allows {allowed.get(name, {}).get(key, 0):,}"
        for name, size in found.items()
        for key in size
        if size[key] > allowed.get(name, {}).get(key, 0) and not (higher or (lower and name not in allowed))
    ]
    everything = sorted((ROOT / "truerank").rglob("*.py"))
    known = frozenset(map(module_of, everything))
    imports = {module_of(path): imports_of(path, known) for path in everything}
    above += [f"import circle: {' <-> '.join(group)}" for group in circles(imports)]
    print("\n".join(above) or f"within {budget.name}: " + ", ".join(f"{n:,} {key}" for key, n in found["all"].items()))
    if lower or higher:
        kept = {
            name: {key: n if higher else min(n, allowed.get(name, {}).get(key, n)) for key, n in size.items()}
            for name, size in found.items()
        }
        rows = (
            f'"{name}" = {{ {", ".join(f"{key} = {n}" for key, n in size.items())} }}' for name, size in kept.items()
        )
        budget.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    return int(bool(above))


def main() -> None:
    """Prints the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT / "truerank"])
    parser.add_argument("--budget", type=Path, help="the largest numbers of each package; 1 where one is above")
    parser.add_argument("--lower", action="store_true", help="write the present numbers where they are lower")
    parser.add_argument("--raise", action="store_true", dest="higher", help="write the present numbers")
    given = parser.parse_args()
    if given.budget is not None:
        sys.exit(spend(given.budget, lower=given.lower, higher=given.higher))
    folders = [folder.resolve() for folder in given.folders]
    total: Counter[str] = Counter()
    print(f"{'':48}{'modules':>8}{'lines':>8}" + "".join(f"{kind:>12}" for kind in KINDS))
    for folder in folders:
        paths = sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]
        counts = sum((kinds_of(path) for path in paths), Counter[str]())
        counts["modules"] = len(paths)
        total += counts
        _line(str(folder.relative_to(ROOT)), counts)
    if len(folders) > 1:
        _line("together", total)
    everything = sorted((ROOT / "truerank").rglob("*.py"))
    known = frozenset(map(module_of, everything))
    found = circles({module_of(path): imports_of(path, known) for path in everything})
    print(f"import circles: {len(found)}")
    for group in found:
        print("  " + " <-> ".join(name.removeprefix("truerank.") for name in group))
    names = Counter(name for path in everything for name in classes_of(path))
    shared = {name: count for name, count in sorted(names.items()) if count > 1}
    print(f"names of public classes that several modules use: {len(shared)}: {', '.join(shared)}")


def _line(name: str, counts: Counter[str]) -> None:
    lines = sum(counts[kind] for kind in KINDS)
    print(f"{name:48}{counts['modules']:>8}{lines:>8}" + "".join(f"{counts[kind]:>12}" for kind in KINDS))


if __name__ == "__main__":
    main()
