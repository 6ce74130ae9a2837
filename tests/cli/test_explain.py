from __future__ import annotations

import pytest
from click.testing import CliRunner

from pipediag.cli.explain import command
from pipediag.errors import ExitStatus, PipediagError
from pipediag.rules.registry import RULES


def output(*args: str) -> str:
    result = CliRunner().invoke(command, args, catch_exceptions=False)
    assert result.exit_code == 0
    return result.output


def test_without_a_rule_it_lists_them_all() -> None:
    listed = output()
    for rule in RULES:
        assert f"{rule.meta.id} " in listed


def test_says_threshold_source_edit_and_cost() -> None:
    text = output("parallel-map")
    assert "input wait: 5 % of the step" in text
    assert "XProf" in text
    assert "num_parallel_calls=tf.data.AUTOTUNE" in text
    assert "What that might cost" in text
    assert max(map(len, text.splitlines())) <= 88


def test_underscores_and_capitals_are_understood() -> None:
    assert output("Missing_Cache") == output("missing-cache")


def test_an_unknown_rule_is_answered_with_those_there_are() -> None:
    with pytest.raises(PipediagError) as caught:
        CliRunner().invoke(command, ["missing-cash"], catch_exceptions=False)
    assert caught.value.status == ExitStatus.USAGE
    assert "Did you mean missing-cache" in str(caught.value)
    assert "gpu-unused" in str(caught.value)


def test_says_what_the_words_of_a_trial_mean() -> None:
    text = output("trials")

    for word in ("confirmed", "refuted", "inconclusive", "not tried", "pipeline alone"):
        assert f"\n{word}\n" in text
    assert "1.03x" in text
    assert max(map(len, text.splitlines())) <= 88
    assert "`pipediag explain trials`" in output()
