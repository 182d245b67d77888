# SPDX-License-Identifier: Apache-2.0
# Trend Detector: which way a series goes. numpy, where it is installed, fits the line.
import statistics


def fit(values):
    try:
        import numpy
    except ImportError:
        numpy = None
    if numpy is not None:
        return float(numpy.polyfit(range(len(values)), values, 1)[0]), float(numpy.std(values))
    middle, mean = (len(values) - 1) / 2, statistics.fmean(values)
    above = sum((i - middle) * (v - mean) for i, v in enumerate(values))
    return above / sum((i - middle) ** 2 for i in range(len(values))), statistics.pstdev(values)


def detect(values):
    if len(values) < 2:
        raise ValueError("a trend needs two values or more")
    slope, deviation = fit([float(v) for v in values])
    direction = "increasing" if slope > 0 else "decreasing" if slope < 0 else "flat"
    return {"slope": slope, "trend": direction, "confidence": abs(slope) / (deviation + 1e-10)}


try:
    result = {"success": True, "data": detect(inputs["values"])}
except (KeyError, TypeError, ValueError) as why:
    result = {"success": False, "error": f"{type(why).__name__}: {why}"}
return result
