# SPDX-License-Identifier: Apache-2.0
"""Judges `retort tools search` on sets of tools and requests, beside plain BM25.

    python3 tests/tools/search-set/score.py            a table: each set alone, and all tools together
    python3 tests/tools/search-set/score.py --misses   also the requests whose first answer is wrong

A set is X.tools.jsonl (what `retort tools import` takes, one tool a line) and X.queries.jsonl
({"query":…, "names":[…]}: every tool that would do). The sets were written for this test: tools in the
style of MCP servers, of REST catalogues and of chat plug-ins; requests in everyday words, mostly without
the tools' own; "rest-long" are stories with several wishes. The synonyms were written before the sets, and
none was added because a request failed. The few weights of query.c were chosen on these sets, but for
"held-out", which was written after that and is for all the tools together.
"""

import collections
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
RETORT = os.environ.get("RETORT", str(HERE.parents[2] / "build/retort"))
SETS = {"mcp": "mcp", "rest": "rest", "rest-long": "rest", "plugin": "plugin"}  # requests: tools
Figures = collections.namedtuple("Figures", "recall_1 recall_5 ndcg_10")


def lines(name):
    return [json.loads(line) for line in (HERE / name).read_text().splitlines()]


def ndcg(got, wanted, depth=10):
    found = sum(1 / math.log2(i + 2) for i, name in enumerate(got[:depth]) if name in wanted)
    return found / sum(1 / math.log2(i + 2) for i in range(min(len(wanted), depth)))


def figures(answers, requests):
    """recall@1: a right tool comes first; recall@5: the share of the right ones in the first five."""
    sums = [0, 0, 0]
    for got, request in zip(answers, requests, strict=True):
        wanted = set(request["names"])
        sums[0] += bool(wanted & set(got[:1]))
        sums[1] += len(wanted & set(got[:5])) / len(wanted)
        sums[2] += ndcg(got, wanted)
    return Figures(*(s / len(requests) for s in sums))


def plain_bm25(tools, requests, k1=1.5, b=0.75):
    def words(text):
        return re.findall(r"\w+", text.lower())

    texts = [words(" ".join([t["name"], t["description"], t.get("category", "")])) for t in tools]
    counts = [collections.Counter(t) for t in texts]
    documents = collections.Counter(word for c in counts for word in c)
    mean = sum(map(len, texts)) / len(texts)

    def weight(word, i):
        tf, df = counts[i][word], documents[word]
        idf = math.log(1 + (len(texts) - df + 0.5) / (df + 0.5))
        return idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * len(texts[i]) / mean))

    answers = []
    for request in requests:
        asked = words(request["query"])
        scores = [(sum(weight(w, i) for w in asked), i) for i in range(len(texts))]
        best = sorted((-s, i) for s, i in scores if s > 0)[:10]
        answers.append([tools[i]["name"] for _, i in best])
    return answers


def retort_search(tools, requests):
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "tools.json")
        path.write_text(json.dumps(tools))
        house = ["--data-dir", str(pathlib.Path(folder, "data"))]
        subprocess.run([RETORT, "tools", "import", path, *house], check=True, capture_output=True)
        asked = "".join(json.dumps({"query": r["query"]}) + "\n" for r in requests)
        done = subprocess.run([RETORT, "tools", "search", "--jsonl", *house], input=asked, check=True,
                              capture_output=True, text=True)
    return [json.loads(line)["names"] for line in done.stdout.splitlines()]


def judge(name, with_all_tools):
    chosen = sorted(set(SETS.values())) if with_all_tools else [SETS[name]]
    tools = [tool for one in chosen for tool in lines(f"{one}.tools.jsonl")]
    requests = lines(f"{name}.queries.jsonl")
    answers = retort_search(tools, requests)
    return tools, requests, answers, figures(answers, requests), figures(plain_bm25(tools, requests), requests)


def main():
    print(f"{'requests':10} {'tools':>5} {'asked':>5}   retort: @1    @5  nDCG   BM25: @1    @5  nDCG")
    for with_all_tools in (False, True):
        for name in [*SETS, "held-out"] if with_all_tools else SETS:
            tools, requests, answers, ours, plain = judge(name, with_all_tools)
            print(f"{name:10} {len(tools):5} {len(requests):5}       {ours[0]:.3f} {ours[1]:.3f} {ours[2]:.3f}"
                  f"       {plain[0]:.3f} {plain[1]:.3f} {plain[2]:.3f}")
            if "--misses" in sys.argv:
                for got, request in zip(answers, requests):
                    if not set(got[:1]) & set(request["names"]):
                        print("   ", request["query"], "->", request["names"], "not", got[:3])


if __name__ == "__main__":
    main()
