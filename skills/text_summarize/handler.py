# SPDX-License-Identifier: Apache-2.0
"""Extractive summary: the sentences whose words the text uses most, in the order it has them.

Lengths are in characters. Regular expressions are left out on purpose: compiling one costs more
than the rest of a usual call.
"""

STOP_WORDS = frozenset(
    "the and is in to of a that it for as on with was at by from this be are or an has have been "
    "had not but they their were which will would can about all".split())
ASCII_BLANKS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}
FIRST_BONUS, LAST_BONUS = 1.5, 1.3


def summarize(text: str, max_sentences: int = 5, style: str = "concise") -> dict:
    sentences = split_sentences(text)
    if len(sentences) <= max_sentences:
        whole = text.strip()
        return describe(text, whole, len(whole), 1.0, len(sentences))
    scores = score(sentences, count_words(text))
    best = sorted(range(len(sentences)), key=lambda i: -scores[i])[:max_sentences]
    summary = join([sentences[i] for i in sorted(best)], style)
    return describe(text, summary.strip(), len(summary), round(len(summary) / len(text), 3),
                    len(best))


def describe(text, summary, length, ratio, count):
    return {"summary": summary, "original_length": len(text), "summary_length": length,
            "compression_ratio": ratio, "sentences_extracted": count}


def split_sentences(text):
    pieces = text.replace("!", ".").replace("?", ".").split(".")
    return [piece.strip() for piece in pieces if piece.strip()]


def words_of(text):
    """Runs of letters, digits and underscores that are three or more letters a to z."""
    text = text.lower()
    if text.isascii():
        spaced = text.translate(ASCII_BLANKS)
    else:
        spaced = "".join(c if c.isalnum() or c == "_" else " " for c in text)
    return [word for word in spaced.split()
            if len(word) >= 3 and word.isascii() and word.isalpha()]


def count_words(text):
    counts = {}
    for word in words_of(text):
        if word not in STOP_WORDS:
            counts[word] = counts.get(word, 0) + 1
    return counts


def score(sentences, counts):
    scores = []
    for sentence in sentences:
        words = words_of(sentence)
        scores.append(sum(counts.get(word, 0) for word in words) / len(words) if words else 0)
    scores[0] *= FIRST_BONUS
    if len(scores) > 1:
        scores[-1] *= LAST_BONUS
    return scores


def join(sentences, style):
    if style == "bullet-points":
        return "".join("\n\u2022 " + sentence for sentence in sentences)
    return (" " if style == "detailed" else ". ").join(sentences) + "."
