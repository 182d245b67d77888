# SPDX-License-Identifier: Apache-2.0
"""The table: what was measured, beside what, and whether that is enough.

A ratio is how many times better than the peer we are, whatever the unit. `must` is what DESIGN asks
for; 0 asks for nothing and is shown as "-": the row is there to judge others by.
"""

import json

rows = []


def percentiles(samples):
    samples = sorted(samples)
    return {p: samples[min(len(samples) - 1, len(samples) * p // 100)] for p in (50, 95, 99)}


def spread(found):
    return "p95 %.2f p99 %.2f" % (found[95], found[99])


def head():
    print("%-46s %10s %-7s %-36s %10s  %7s  %6s" % ("what", "value", "", "peer", "peer's", "ratio", "must"))


def add(name, value, unit, peer, peer_value, must, ratio=None, detail=""):
    if ratio is None and peer_value is not None:
        ratio = peer_value / value
    ok = None if ratio is None else ratio >= must
    rows.append({"name": name, "value": round(value, 3), "unit": unit, "peer": peer,
                 "peer_value": None if peer_value is None else round(peer_value, 3),
                 "ratio": None if ratio is None else round(ratio, 2), "must": round(must, 2), "ok": ok})
    mark = "-" if ok is None or must == 0 else "ok" if ok else "BELOW"
    print("%-46s %10.2f %-7s %-36s %10s  %7s  %6s  %-5s %s" % (
        name, value, unit, peer, "-" if peer_value is None else "%.2f" % peer_value,
        "-" if ratio is None else ("%.1fx" if ratio >= 10 else "%.2fx") % ratio,
        "%.3gx" % must if must else "-", mark, detail), flush=True)


def write(path):
    with open(path, "w") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")
