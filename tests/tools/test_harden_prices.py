# SPDX-License-Identifier: MIT
"""The tables of what hardened mode costs."""
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import harden_prices  # noqa: E402

MEMBERS = ["`exact`", "`random`", "`quarantine`", "`zero`", "`canary`", "`guards`", "`sized`"]


def test_each_member_is_measured_alone_beside_balanced():
    arms = harden_prices.arms()
    assert list(arms) == ["balanced", *MEMBERS, "hardened"]
    assert arms["`zero`"] == {"HAKMEM_MODE": "balanced", "HAKMEM_HARDEN": "zero"}
    assert arms["hardened"] == {"HAKMEM_MODE": "hardened"}


def test_a_table_compares_with_balanced():
    figures = {arm: 2.0 * place for place, arm in enumerate(harden_prices.arms(), 1)}
    text = harden_prices.ratio_rows(["larson"], [figures], "{:.1f} M".format)
    assert "| larson | 2.0 M | 2.00 | 3.00 |" in text
    assert text.rstrip().endswith("| 9.00 |")


def test_only_what_lies_between_the_marks_is_replaced():
    document = "before\n<!-- counts: generated -->\nold\n<!-- end of counts -->\nafter\n"
    assert harden_prices.placed(document, "counts", "new\n") == document.replace("old", "\nnew")


def test_a_document_without_the_marks_is_refused():
    with pytest.raises(SystemExit, match="no place for times"):
        harden_prices.placed("text\n", "times", "new\n")


def test_the_document_has_a_place_for_counts_and_times():
    document = harden_prices.DOCUMENT.read_text()
    for what in ("counts", "times"):
        assert harden_prices.placed(document, what, "new\n") != document
