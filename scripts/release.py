"""Makes a release: `python scripts/release.py prepare 0.2.0`, then `build`; each step can be run again.

    python scripts/release.py prepare VERSION [--date 2026-12-01]
    python scripts/release.py build [--extra fast …] [--no-docs]
    python scripts/release.py recipe [--sdist dist/truerank-0.2.0.tar.gz]

`prepare` writes the version to src/truerank/version.py, from which all else reads it, to CITATION.cff and to the
recipe, and gives the section "Unreleased" of the changelog its heading. `build` makes source archive and wheel with
`python -m build`, uses the wheel in an empty environment, once alone and once with each extra asked for, builds the
documentation site, and writes the recipe with the hash of the archive. `recipe` writes packaging/conda/recipe.yaml,
whose dependencies are those of pyproject.toml. Nothing is uploaded.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VERSION = "src/truerank/version.py"
RECIPE = "packaging/conda/recipe.yaml"
PYPI = "https://pypi.org/packages/source/t/truerank"
#: Names of PyPI that conda-forge writes otherwise.
CONDA_NAMES = {"huggingface-hub": "huggingface_hub", "jinja2": "jinja2", "matplotlib": "matplotlib-base"}
#: Of an archive that does not exist yet.
NO_HASH = "0" * 64
_NUMBER = re.compile(r"\d+\.\d+\.\d+(?:(?:a|b|rc)\d+)?")
_REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9._-]+)\s*(?P<bounds>[^;]*?)\s*(?:;.*)?")


def version_of(root: Path = ROOT) -> str:
    """The version that the package has."""
    found = re.search(r'__version__ = "([^"]+)"', (root / VERSION).read_text(encoding="utf-8"))
    if found is None:
        raise SystemExit(f'{VERSION}: no version. write __version__ = "0.1.0"')
    return found[1]


def prepare(version: str, date: str, root: Path = ROOT) -> None:
    """Writes the version and its date wherever they stand.

    Args:
        version: as 0.2.0 or 0.2.0rc1, above the one before.
        date: of the release, as 2026-12-01.
        root: of the checkout.
    """
    if not _NUMBER.fullmatch(version):
        raise SystemExit(f"{version}: no version. write three numbers, such as 0.2.0 or 0.2.0rc1")
    datetime.date.fromisoformat(date)
    changelog = root / "CHANGELOG.md"
    text = changelog.read_text(encoding="utf-8")
    if f"\n## {version} " in text:
        raise SystemExit(f"CHANGELOG.md: {version} has a section. choose another version")
    entries = re.search(r"\n## Unreleased\n(.*?)(?=\n## |\Z)", text, re.DOTALL)
    if entries is None or not entries[1].strip():
        raise SystemExit('CHANGELOG.md: nothing under "## Unreleased". write what changed')
    changelog.write_text(
        text.replace("\n## Unreleased\n", f"\n## Unreleased\n\n## {version} – {date}\n", 1), encoding="utf-8"
    )
    _rewrite(root / VERSION, r'__version__ = "[^"]+"', f'__version__ = "{version}"')
    dated = f"version: {version}\ndate-released: {date}"
    _rewrite(root / "CITATION.cff", r"(?m)^version: .*(\ndate-released: .*)?$", dated)
    write_recipe(NO_HASH, root)


def recipe(sha256: str, root: Path = ROOT) -> str:
    """The recipe of conda-forge, in the format of rattler-build.

    Args:
        sha256: of the source archive.
        root: of the checkout.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    about = project["project"]
    python_min = about["requires-python"].removeprefix(">=")
    run = "\n".join(f"    - {conda_requirement(one)}" for one in sorted(about["dependencies"], key=str.lower))
    host = "\n".join(f"    - {conda_requirement(one)}" for one in project["build-system"]["requires"])
    return f"""\
# Written by scripts/release.py; the dependencies are those of pyproject.toml.
schema_version: 1

context:
  version: "{version_of(root)}"
  python_min: "{python_min}"

package:
  name: truerank
  version: ${{{{ version }}}}

source:
  url: {PYPI}/truerank-${{{{ version }}}}.tar.gz
  sha256: "{sha256}"

build:
  number: 0
  noarch: python
  script: ${{{{ PYTHON }}}} -m pip install . -vv --no-deps --no-build-isolation
  python:
    entry_points:
      - truerank = {about["scripts"]["truerank"]}

requirements:
  host:
    - python ${{{{ python_min }}}}.*
    - pip
{host}
  run:
    - python >=${{{{ python_min }}}}
{run}

tests:
  - python:
      imports:
        - truerank
      python_version: ${{{{ python_min }}}}.*
  - script:
      - truerank --version
      - truerank evaluate --help

about:
  summary: {json.dumps(about["description"])}
  license: {about["license"]}
  license_file: LICENSE
"""


def conda_requirement(requirement: str) -> str:
    """A requirement of pyproject.toml as conda writes it.

    Markers are dropped, since one package serves all versions of Python.

    Args:
        requirement: such as "backports.zstd>=1.0; python_version < '3.14'".
    """
    found = _REQUIREMENT.fullmatch(requirement)
    if found is None:
        raise SystemExit(f"pyproject.toml: {requirement!r} is not understood. name a package and its bounds")
    name = found["name"].lower()
    return f"{CONDA_NAMES.get(name, name)} {found['bounds']}".strip()


def write_recipe(sha256: str, root: Path = ROOT) -> None:
    """Writes the recipe."""
    path = root / RECIPE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(recipe(sha256, root), encoding="utf-8")


def build(extras: list[str], docs: bool) -> None:
    """Builds archive and wheel, uses the wheel, builds the documentation, writes the recipe.

    Args:
        extras: each is installed into an environment of its own.
        docs: whether the documentation site is built.
    """
    dist = ROOT / "dist"
    for old in dist.glob("truerank-*"):
        old.unlink()
    _run("-m", "build", "--outdir", str(dist), str(ROOT))
    name = f"truerank-{version_of()}"
    wheel, sdist = dist / f"{name}-py3-none-any.whl", dist / f"{name}.tar.gz"
    for extra in ("", *extras):
        _run("scripts/check_wheel.py", "--wheel", str(wheel), *(("--extra", extra) if extra else ()))
    if docs:
        _run("scripts/make_reference.py")
        _run("-m", "mkdocs", "build", "--strict", "--quiet")
    write_recipe(hashlib.sha256(sdist.read_bytes()).hexdigest())
    print(f"{wheel.name} and {sdist.name} are in dist/; the recipe has the hash. To publish: twine upload dist/*")


def _rewrite(path: Path, pattern: str, text: str) -> None:
    content, count = re.subn(pattern, text, path.read_text(encoding="utf-8"), count=1)
    if not count:
        raise SystemExit(f"{path.name}: no version in it. write one")
    path.write_text(content, encoding="utf-8")


def _run(*words: str) -> None:
    subprocess.run([sys.executable, *words], cwd=ROOT, check=True)


def main() -> None:
    """Runs one step."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = parser.add_subparsers(dest="step", required=True)
    prepared = steps.add_parser("prepare", help="write version and changelog")
    prepared.add_argument("version")
    prepared.add_argument("--date", default=datetime.datetime.now(datetime.UTC).date().isoformat())
    built = steps.add_parser("build", help="build and check everything")
    built.add_argument("--extra", action="append", default=[], help="also check the wheel with this extra (repeatable)")
    built.add_argument("--no-docs", dest="docs", action="store_false")
    steps.add_parser("recipe", help="write the recipe").add_argument("--sdist", type=Path)
    given = parser.parse_args()
    if given.step == "prepare":
        prepare(given.version, given.date)
    elif given.step == "build":
        build(given.extra, given.docs)
    else:
        write_recipe(NO_HASH if given.sdist is None else hashlib.sha256(given.sdist.read_bytes()).hexdigest())


if __name__ == "__main__":
    main()
