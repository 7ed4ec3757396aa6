"""The SARIF of both audits against the JSON schema of SARIF 2.1.0 and Microsoft's validator, with GitHub's rules.

    npm pack @microsoft/sarif-multitool-linux && tar xzf microsoft-sarif-multitool-linux-*.tgz
    python benchmarks/sarif_validation.py package/

The folder holds the schema and the program. The encoder is the packaged one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import jsonschema

import truerank
from truerank.sources.sample import SAMPLE

FAULTY = "1 0 a 1\n1 0 b 1\n1 0 b 0\n2 0 c x\n3 0 d 0\n"


def main(package: Path) -> None:
    """Makes three logs, a log of hostile texts among them, and validates them."""
    schema = json.loads((package / "sarif-2.1.0.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        Path("faulty.qrels").write_text(FAULTY, encoding="utf-8")
        truerank.collection.audit(qrels="faulty.qrels", out="collection")
        train, tests = [str(path) for path in SAMPLE.train], [str(path) for path in SAMPLE.tests]
        truerank.leakage.audit(train, tests, encoder="packaged", out="sample")
        hostile = "red apples in {0} winter [here](1) \u202e\U0001f40b %41 <b>"
        queries = Path("a log #1.tsv")
        queries.write_text(f"q1\t{hostile}\n", encoding="utf-8")
        Path("topics.tsv").write_text(f"1\t{hostile}\n", encoding="utf-8")
        truerank.leakage.audit([str(queries)], ["topics.tsv"], encoder="packaged", out="hostile")
        for name in ("collection", "sample", "hostile"):
            log = Path(name) / "findings.sarif"
            content = json.loads(log.read_text(encoding="utf-8"))
            jsonschema.validate(content, schema)
            counts = Counter(one["ruleId"] for one in content["runs"][0]["results"])
            done = subprocess.run(
                [package / "Sarif.Multitool", "validate", log, "--rule-kind", "Sarif;Ghas"],
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            told = Counter(
                line.split(": ")[1].split()[0] for line in done.stdout.splitlines() if "findings.sarif(" in line
            )
            kinds = ", ".join(f"{rule} {number}" for rule, number in counts.most_common())
            print(f"{name}: schema holds; validator exit {done.returncode}, {dict(told)}; {kinds}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
