# SPDX-License-Identifier: Apache-2.0
# Statistical Analyzer: how numbers are distributed. pandas, where it is installed, does the sums.
import math
import statistics


def numbers_of(rows):
    columns = {}
    for row in rows:
        for name, value in row.items():
            if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
                columns.setdefault(name, []).append(value)
    return columns


def central_moment(values, mean, power):
    return sum((v - mean) ** power for v in values) / len(values)


def skewness(values, mean):
    n, m2 = len(values), central_moment(values, mean, 2)
    if n < 3:
        return None
    return math.sqrt(n * (n - 1)) / (n - 2) * central_moment(values, mean, 3) / m2 ** 1.5 if m2 else 0.0


def kurtosis(values, mean):
    n, m2 = len(values), central_moment(values, mean, 2)
    if n < 4:
        return None
    excess = central_moment(values, mean, 4) / m2 ** 2 - 3 if m2 else 0.0
    return (n - 1) / ((n - 2) * (n - 3)) * ((n + 1) * excess + 6) if m2 else 0.0


def with_standard_library(values):
    mean = statistics.fmean(values)
    return {"mean": mean, "median": statistics.median(values),
            "std": statistics.stdev(values) if len(values) > 1 else None, "min": min(values), "max": max(values),
            "skewness": skewness(values, mean), "kurtosis": kurtosis(values, mean)}


def with_pandas(pandas, values):
    column = pandas.Series(values, dtype="float64")
    return {"mean": column.mean(), "median": column.median(), "std": column.std(), "min": column.min(),
            "max": column.max(), "skewness": column.skew(), "kurtosis": column.kurt()}


def analyze(rows):
    try:
        import pandas
    except ImportError:
        pandas = None
    columns = numbers_of(rows)
    if not columns:
        raise ValueError("no column has numbers")
    return {name: with_pandas(pandas, values) if pandas else with_standard_library(values)
            for name, values in columns.items()}


try:
    result = {"success": True, "data": analyze(inputs["data"])}
except (KeyError, AttributeError, TypeError, ValueError) as why:
    result = {"success": False, "error": f"{type(why).__name__}: {why}"}
return result
