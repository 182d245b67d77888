# SPDX-License-Identifier: Apache-2.0
"""Sentiment by counting words: a sample of a skill, not of sentiment analysis."""

POSITIVE = frozenset("amazing best brilliant delightful easy enjoy excellent fantastic good great "
                     "happy helpful like love lovely nice perfect pleased recommend wonderful".split())
NEGATIVE = frozenset("angry awful bad broken difficult disappointed dislike fail hate horrible "
                     "poor sad slow terrible ugly unhappy useless worst wrong".split())
NEGATIONS = frozenset("not never no hardly isn't wasn't don't doesn't didn't can't".split())


def analyze(text: str) -> dict:
    words = [word.strip(".,;:!?\"()").lower() for word in text.split()]
    score = told = 0
    for before, word in zip(["", *words], words):
        value = (word in POSITIVE) - (word in NEGATIVE)
        score += -value if before in NEGATIONS else value
        told += abs(value)
    polarity = round(score / told, 3) if told else 0.0
    sentiment = "positive" if polarity > 0 else "negative" if polarity < 0 else "neutral"
    return {"sentiment": sentiment, "polarity": polarity,
            "confidence": round(min(1.0, told / 4), 3), "word_count": len(words)}
