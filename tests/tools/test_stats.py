# SPDX-License-Identifier: MIT
"""The statistics, against scipy and against samples whose answer is known."""
import numpy as np
import pytest
from scipy import stats as scipy_stats

from hakbench import stats

SAMPLE = np.random.default_rng(7).normal(100, 5, 25)


def test_interval_of_the_median_agrees_with_scipy():
    expected = scipy_stats.bootstrap((SAMPLE,), np.median, method="percentile",
                                     n_resamples=20000, random_state=3).confidence_interval
    assert stats.median_interval(SAMPLE) == pytest.approx((expected.low, expected.high), rel=0.01)


def test_summary_of_a_known_sample():
    summary = stats.summarize([1, 2, 3, 4, 10])
    assert (summary.count, summary.median, summary.mean, summary.mad) == (5, 3, 4, 1)
    assert summary.cv == pytest.approx(scipy_stats.variation([1, 2, 3, 4, 10], ddof=1))


def test_a_far_value_is_marked_and_kept():
    summary = stats.summarize([10, 10.1, 9.9, 10, 10.2, 9.8, 10, 30])
    assert summary.outliers == (7,)
    assert summary.count == 8


def test_pairing_removes_a_drift_that_both_arms_share():
    drift = np.linspace(1, 3, 10)
    ratio = stats.paired_ratio(80 * drift, 100 * drift)
    assert (ratio.median, ratio.low, ratio.high) == pytest.approx((0.8, 0.8, 0.8))


def test_unequal_samples_are_no_pairs():
    with pytest.raises(ValueError):
        stats.paired_ratio([1, 2], [1])


def test_no_claim_inside_the_noise():
    ratio = stats.paired_ratio([99, 98.9, 99.1], [100, 100, 100])
    assert stats.verdict(ratio, 0.02) == 0
    assert stats.verdict(ratio, 0.005) == -1


def test_an_interval_around_one_is_no_claim():
    assert stats.verdict(stats.Ratio(1.05, 0.99, 1.1), 0.01) == 0


def test_one_value_has_no_spread():
    summary = stats.summarize([5.0])
    assert (summary.cv, summary.low, summary.high) == (0, 5, 5)


def test_the_ratio_of_samples_measured_apart_agrees_with_scipy():
    other = np.random.default_rng(9).normal(80, 4, 30)
    ratio = stats.unpaired_ratio(SAMPLE, other)
    expected = scipy_stats.bootstrap(
        (SAMPLE, other), lambda a, b, axis: np.median(a, axis=axis) / np.median(b, axis=axis),
        method="percentile", n_resamples=20000, random_state=3, vectorized=True)
    assert ratio.median == pytest.approx(np.median(SAMPLE) / np.median(other))
    assert (ratio.low, ratio.high) == pytest.approx(tuple(expected.confidence_interval), rel=0.01)


def test_spread_and_geometric_mean_agree_with_scipy():
    summary = stats.summarize(SAMPLE)
    assert summary.deviation == pytest.approx(scipy_stats.tstd(SAMPLE))
    assert summary.mad == pytest.approx(scipy_stats.median_abs_deviation(SAMPLE))
    assert stats.geometric_mean(SAMPLE) == pytest.approx(scipy_stats.gmean(SAMPLE))
