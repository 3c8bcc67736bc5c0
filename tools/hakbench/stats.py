# SPDX-License-Identifier: MIT
"""Medians, spreads, bootstrap intervals and paired ratios. Samples are sequences of numbers."""
from dataclasses import dataclass

import numpy as np

RESAMPLES = 5000
CONFIDENCE = 0.95
OUTLIER_SIGMAS = 2.0


@dataclass(frozen=True)
class Summary:
    """cv is the standard deviation over the mean; low and high bound the median (95 %)."""
    count: int
    median: float
    mean: float
    deviation: float
    mad: float
    cv: float
    low: float
    high: float
    outliers: tuple


@dataclass(frozen=True)
class Ratio:
    """The median of paired ratios and its 95 % interval."""
    median: float
    low: float
    high: float

    @property
    def half_width(self):
        return (self.high - self.low) / 2


def summarize(sample):
    """The Summary of at least one number."""
    values = np.asarray(sample, dtype=float)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else 0.0
    mean = float(values.mean())
    low, high = median_interval(values)
    median = float(np.median(values))
    mad = float(np.median(np.abs(values - median)))
    return Summary(len(values), median, mean, deviation, mad,
                   deviation / mean if mean else 0.0, low, high, tuple(outliers(values)))


def median_interval(sample):
    """(low, high) of the median by bootstrap of percentiles, with a fixed seed."""
    values = np.asarray(sample, dtype=float)
    if len(values) < 2:
        return float(values[0]), float(values[0])
    medians = _medians(np.random.default_rng(1), values)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(medians, [tail, 1 - tail])
    return float(low), float(high)


def outliers(sample):
    """Places of the values more than two standard deviations from the mean; they are kept."""
    values = np.asarray(sample, dtype=float)
    if len(values) < 3 or values.std(ddof=1) == 0:
        return []
    far = np.abs(values - values.mean()) > OUTLIER_SIGMAS * values.std(ddof=1)
    return [int(place) for place in np.flatnonzero(far)]


def paired_ratio(numerator, denominator):
    """The Ratio of two samples whose nth values were measured in the same round."""
    if len(numerator) != len(denominator) or not len(numerator):
        raise ValueError("paired samples have the same number of values, at least one")
    ratios = np.asarray(numerator, dtype=float) / np.asarray(denominator, dtype=float)
    low, high = median_interval(ratios)
    return Ratio(float(np.median(ratios)), low, high)


def unpaired_ratio(numerator, denominator):
    """The ratio of two medians whose samples were measured apart, such as in two sessions."""
    above, below = np.asarray(numerator, dtype=float), np.asarray(denominator, dtype=float)
    generator = np.random.default_rng(1)
    ratios = _medians(generator, above) / _medians(generator, below)
    tail = (1 - CONFIDENCE) / 2
    low, high = np.quantile(ratios, [tail, 1 - tail])
    return Ratio(float(np.median(above) / np.median(below)), float(low), float(high))


def _medians(generator, values):
    picks = generator.integers(0, len(values), (RESAMPLES, len(values)))
    return np.median(values[picks], axis=1)


def floor(first, second):
    """How far from 1 a ratio can be by chance: one allocator measured twice, as two arms."""
    ratio = paired_ratio(first, second)
    return max(ratio.half_width, abs(ratio.median - 1))


def verdict(ratio, floor_width):
    """-1 if the ratio is surely below 1, +1 if surely above, 0 inside the noise."""
    if abs(ratio.median - 1) <= floor_width or ratio.low <= 1 <= ratio.high:
        return 0
    return 1 if ratio.median > 1 else -1


def geometric_mean(values):
    """Of positive numbers."""
    return float(np.exp(np.log(np.asarray(values, dtype=float)).mean()))
