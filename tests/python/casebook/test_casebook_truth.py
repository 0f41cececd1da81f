"""What is said to be true of each script fits the script and the public ids."""

from __future__ import annotations

import pathlib
import re

import pytest
from casebook_ids import FINDINGS, REMEDIES
from tests.casebook.runner import CASES
from tests.casebook.truth import TRUTHS, Edit, FixError, fixed
from tests.casebook.truth.data_loading import DATA_LOADING
from tests.casebook.truth.healthy import HEALTHY
from tests.casebook.truth.resources import RESOURCES
from tests.casebook.truth.tricky import TRICKY

RULES = pathlib.Path(__file__).resolve().parents[3] / "csrc/diagnose/rules"


def test_each_script_has_one_truth_and_each_truth_a_script():
    tables = [*DATA_LOADING, *RESOURCES, *TRICKY, *HEALTHY]
    assert len(tables) == len(TRUTHS)
    scripts = {path.stem for path in CASES.glob("*.py") if not path.name.startswith("_")}
    assert set(TRUTHS) == scripts


def test_the_healthy_are_a_dozen_at_least_and_the_others_say_which_case_they_retell():
    healthy = [truth for truth in TRUTHS.values() if truth.healthy]
    assert len(healthy) >= 12 and len(TRUTHS) - len(healthy) >= 14
    assert {truth.script for truth in HEALTHY} == {truth.script for truth in healthy}
    for truth in TRUTHS.values():
        pattern = r"\d-\d\d(, \d-\d\d)*|T-\d\d|R\d+" + ("|" if truth.healthy else "")
        assert re.fullmatch(pattern, truth.casebook), truth.script


def test_the_tricky_cases_of_the_loader_are_there():
    told = {truth.casebook for truth in TRUTHS.values()}
    assert {"T-01", "T-09", "T-10", "T-19", "T-22", "T-25"} <= told


def test_the_list_of_known_findings_has_every_rule_that_exists():
    assert {path.stem for path in RULES.glob("*.cpp")} <= FINDINGS


@pytest.mark.parametrize("truth", TRUTHS.values(), ids=TRUTHS)
def test_a_truth_is_sound(truth):
    assert {*truth.finds, *truth.never} <= FINDINGS
    assert {*truth.remedies, *truth.refused} <= REMEDIES
    assert not set(truth.finds) & set(truth.never)
    assert not set(truth.remedies) & set(truth.refused)
    assert {"--epochs", "--items"} <= set(truth.quick)
    if truth.healthy:
        assert not (truth.remedies or truth.fix or truth.never)
    if truth.fix and truth.fix_is_live:
        assert truth.remedies, "a live fix without a remedy that could make it"


@pytest.mark.parametrize("truth", [t for t in TRUTHS.values() if t.fix], ids=lambda t: t.script)
def test_a_fix_fits_its_script(truth):
    source = (CASES / f"{truth.script}.py").read_text()
    mended = fixed(source, truth.fix)
    assert mended != source
    compile(mended, truth.script, "exec")


def test_a_fix_that_no_longer_fits_is_refused():
    with pytest.raises(FixError, match="0 times"):
        fixed("a = 1\n", (Edit("b = 1", "b = 2"),))
    with pytest.raises(FixError, match="2 times"):
        fixed("a = 1\na = 1\n", (Edit("a = 1", "a = 2"),))
    assert fixed("a = 1\n", (Edit("a = 1", "a = 2"),)) == "a = 2\n"
