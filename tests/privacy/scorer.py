# SPDX-License-Identifier: Apache-2.0
"""Reads labelled texts and scores a scan of them.

A line is one text; "\\n" in it is a line end, and [[TYPE:value]] marks a piece of personal data. A found
span is right when it has the type of a marked one and shares at least half of the union with it.
"""

import collections
import json
import re
import subprocess

MARK = re.compile(r"\[\[([A-Z_]+):(.*?)\]\]", re.S)


def read_line(line):
    """'mail [[EMAIL:a@b.org]]' gives ('mail a@b.org', [(5, 12, 'EMAIL')])."""
    line = re.sub(r"\\(\\|n)", lambda m: "\n" if m[1] == "n" else "\\", line)
    text, spans, at = "", [], 0
    for mark in MARK.finditer(line):
        text += line[at:mark.start()]
        spans.append((len(text), len(text) + len(mark[2]), mark[1]))
        text += mark[2]
        at = mark.end()
    return text + line[at:], spans


def read(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return [read_line(line) for line in lines if line and not line.startswith("##")]


def scan(program, texts, *options):
    given = "".join(json.dumps({"text": text}) + "\n" for text in texts)
    done = subprocess.run([program, "privacy", "scan", "--jsonl", *options], input=given.encode(),
                          capture_output=True, check=True)
    answers = [json.loads(line)["spans"] for line in done.stdout.splitlines()]
    return [[(s["start"], s["end"], s["type"]) for s in spans] for spans in answers]


def agree(a, b):
    shared = min(a[1], b[1]) - max(a[0], b[0])
    return a[2] == b[2] and shared > 0 and 2 * shared >= max(a[1], b[1]) - min(a[0], b[0])


class Score:
    """Right, wrong and missed by type, with the texts to look at."""

    def __init__(self, labelled, found):
        self.right, self.wrong, self.missed = (collections.Counter() for _ in range(3))
        self.exact = collections.Counter()
        self.errors = []
        for (text, wanted), spans in zip(labelled, found, strict=True):
            left = list(wanted)
            for span in spans:
                match = next((w for w in left if agree(w, span)), None)
                if match:
                    left.remove(match)
                    self.right[span[2]] += 1
                    self.exact[span[2]] += match == span
                else:
                    self.wrong[span[2]] += 1
                    self.errors.append(("wrong", span[2], text[span[0]:span[1]], text))
            for span in left:
                self.missed[span[2]] += 1
                self.errors.append(("missed", span[2], text[span[0]:span[1]], text))

    def precision(self, kind):
        return self.right[kind] / max(1, self.right[kind] + self.wrong[kind])

    def recall(self, kind):
        return self.right[kind] / max(1, self.right[kind] + self.missed[kind])

    def table(self):
        rows = [f"{'type':16} {'marked':>6} {'P':>6} {'R':>6} {'exact':>6}"]
        for kind in sorted(set(self.right) | set(self.wrong) | set(self.missed)):
            marked = self.right[kind] + self.missed[kind]
            exact = self.exact[kind] / max(1, self.right[kind])
            rows.append(f"{kind:16} {marked:6} {self.precision(kind):6.3f} {self.recall(kind):6.3f} {exact:6.2f}")
        return "\n".join(rows)


if __name__ == "__main__":
    import pathlib
    import sys
    rows = [row for path in sys.argv[2:] for row in read(pathlib.Path(path))]
    score = Score(rows, scan(sys.argv[1], [text for text, _ in rows]))
    for error in score.errors:
        print(*map(repr, error))
    print(score.table())
