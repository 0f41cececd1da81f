"""The scripts of the casebook are ordinary ones: nothing in them knows of gpuutil or gives the cause away."""

from __future__ import annotations

import ast
import io
import re
import tokenize

import pytest
from casebook_ids import FINDINGS, REMEDIES
from tests.casebook.runner import CASES

SCRIPTS = sorted(path for path in CASES.glob("*.py") if not path.name.startswith("_"))
HELPERS = sorted(CASES.glob("_*.py"))
HINTS = re.compile(r"slow|bottleneck|inefficien|casebook|wasteful|tuned|overhead|case \d", re.IGNORECASE)


@pytest.mark.parametrize("script", [*SCRIPTS, *HELPERS], ids=lambda path: path.stem)
def test_a_script_parses_and_does_not_import_gpuutil(script):
    for node in ast.walk(ast.parse(script.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        assert not any(name.split(".")[0] == "gpuutil" for name in names)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_gives_nothing_away(script):
    text = script.stem + "\n" + script.read_text()
    named = {name for name in FINDINGS | REMEDIES if re.search(rf"\b{name}\b", text)}
    assert not named
    assert HINTS.search(text) is None
    assert "gpuutil" not in text
    tokens = tokenize.generate_tokens(io.StringIO(script.read_text()).readline)
    assert not [token.string for token in tokens if token.type == tokenize.COMMENT]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_script_does_the_real_thing(script):
    source = script.read_text()
    assert "sleep" not in source
    assert source.rstrip().endswith('if __name__ == "__main__":\n    main()')


def test_only_the_store_in_another_building_waits():
    assert [path.name for path in HELPERS if "sleep" in path.read_text()] == ["_photo_server.py"]
