from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest

from scoring.types import Bucket
from tests.unit.training.evaluation.builders import CRASH, evaluation, result
from training.evaluation.observing import Observed
from training.evaluation.picture import picture
from training.evaluation.report import against, report
from training.evaluation.statistics import share
from training.evaluation.table import OURS, PAPER, report_markdown, table, table_markdown
from training.exceptions import EvaluationError


def test_rates_are_over_problems_and_samples() -> None:
    found = report(
        evaluation("a", "b", samples=2),
        [result("a", True), result("a", False, 1), result("b", False), result("b", False, 1)],
    )
    assert found.overall.pass_at[1].estimate == 0.25
    assert found.overall.pass_at[2].estimate == 0.5
    assert found.per_problem == {"a": 0.5, "b": 0.0}
    assert found.overall.upstream is not None
    assert found.overall.upstream.estimate == 0.25


def test_one_open_sample_leaves_no_number_and_its_fault_apart() -> None:
    found = report(evaluation("a", "b"), [result("a", True), result("b", None)])
    assert not found.complete
    assert (found.overall.samples, found.overall.open) == (2, 1)
    assert found.overall.pass_at == {}
    assert found.per_problem == {}
    assert found.errors == {"model.unreachable": 1}
    assert "incomplete (1 open)" in table_markdown(table([found], published=False))
    assert "1 × model.unreachable" in report_markdown([found], [])


def test_a_sample_that_was_never_run_is_open() -> None:
    found = report(evaluation("a", samples=2), [result("a", True)])
    assert found.overall.open == 1


def test_a_bucket_may_be_complete_while_the_whole_is_not() -> None:
    both = replace(evaluation(), problems=(("a", Bucket.PRODUCT), ("b", Bucket.SHOP)), samples=1)
    found = report(both, [result("a", True), result("b", None, bucket=Bucket.SHOP)])
    assert found.by_bucket[Bucket.PRODUCT].pass_at[1].estimate == 1
    assert not found.by_bucket[Bucket.SHOP].complete
    assert not found.complete


def test_an_agents_own_crash_is_a_failure_and_not_open() -> None:
    found = report(evaluation("a"), [result("a", False, failure=CRASH, ids=())])
    assert found.complete
    assert found.overall.failed is not None
    assert found.overall.failed.estimate == 1
    assert found.overall.recommended is not None
    assert found.overall.recommended.estimate == 0


def test_an_axis_is_a_mean_over_the_problems_that_state_it() -> None:
    results = [
        result("a", False, price=0.5),
        result("b", True, price=None),
        result("c", True, price=1.0),
    ]
    found = report(evaluation("a", "b", "c"), results)
    assert found.overall.axes["price"].estimate == 0.75
    assert "title" not in found.overall.axes


def test_invented_ids_are_per_step_over_all_runs() -> None:
    results = [
        result("a", False, observed=Observed(steps=1, invented_ids=3, truncated=1)),
        result("b", False, observed=Observed(steps=5)),
    ]
    found = report(evaluation("a", "b"), results).overall
    assert found.invented_per_step == 0.5
    assert found.steps == 3
    assert found.truncated is not None
    assert found.truncated.estimate == 0.5


def test_no_success_at_all_is_not_certain_failure() -> None:
    # Clopper and Pearson: 0 of 10 may be up to 1 - 0.025^(1/10).
    assert share([0.0] * 10).high == pytest.approx(1 - 0.025**0.1)
    assert share([1.0] * 10).low == pytest.approx(0.025**0.1)


def test_two_evaluations_are_compared_on_the_same_problems() -> None:
    names = [f"p{n}" for n in range(12)]
    base = report(evaluation(*names, label="base"), [result(n, False) for n in names])
    mine = report(evaluation(*names), [result(n, True) for n in names])
    found = against(base, mine)
    assert found.paired.difference.estimate == 1
    assert found.paired.separated
    assert "| base | mine | +100.0 |" in report_markdown([base, mine], [found])


def test_what_cannot_be_compared_is_said() -> None:
    whole = report(evaluation("a"), [result("a", True)])
    with pytest.raises(EvaluationError, match="1 samples have no outcome"):
        against(report(evaluation("a", label="half"), [result("a", None)]), whole)
    with pytest.raises(EvaluationError, match="not in both"):
        against(report(evaluation("b"), [result("b", True)]), whole)


def test_rows_say_whose_harness_measured_them() -> None:
    rows = table([report(evaluation("a"), [result("a", True)])])
    assert [row.harness for row in rows].count(OURS) == 1
    assert {row.problems for row in rows if row.harness == PAPER} == {75}
    published = {row.model: row.asr for row in rows if row.harness == PAPER}
    assert published["opd_renderers"] == pytest.approx(0.427)
    assert published["top SN15 miner"] == pytest.approx(0.773)


def test_the_picture_is_xml_whatever_a_model_is_called() -> None:
    named = evaluation("a", label='<script>"&\x00\x1b[31m')
    rows = table([report(named, [result("a", True)])])
    content = picture(rows)
    tree = ET.fromstring(content)
    assert content == picture(rows)
    shown = "".join(tree.itertext())
    assert '<script>"&' in shown
    assert "100.0" in shown


def test_an_incomplete_evaluation_has_no_bar() -> None:
    rows = table([report(evaluation("a"), [result("a", None)])], published=False)
    assert b"mine" not in picture(rows)
