# SPDX-License-Identifier: Apache-2.0
"""Named entities by their form. A row of the table is a type, how sure its form is, its patterns.

Patterns are compiled when their type is asked for: compiling all of them takes longer than looking.
"""

import re

WORD = r"[A-Z][a-z]+"
WORDS = rf"{WORD}(?:\s+{WORD})*"
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"

KINDS = {
    "EMAIL": (0.9, (r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Za-z]{2,}\b",)),
    "PHONE": (0.8, (r"\b(?:\+?\d{1,3}[-.\s]?)?\(?\d{3}\)?[-.\s]?\d{3}[-.\s]?\d{4}\b",)),
    "URL": (0.95, (r"https?://[^\s<>\"']+(?<![.,;:!?)\]])",)),
    "DATE": (0.7, (r"\b\d{1,2}/\d{1,2}/\d{2,4}\b", r"\b\d{4}-\d{2}-\d{2}\b",
                   rf"(?i:\b{MONTH}\s+\d{{1,2}},?\s+\d{{4}}\b)")),
    "MONEY": (0.8, (r"(?:[$£€]|USD|EUR|GBP)\s*\d+(?:,\d{3})*(?:\.\d{2})?",)),
    "PERSON": (0.6, (rf"\b(?:Mr|Mrs|Ms|Dr|Prof)\.\s+{WORDS}\b",
                     rf"\b{WORD}(?:\s+{WORD}){{1,2}}\b")),
    "ORGANIZATION": (0.5, (rf"\b{WORDS}\s+(?:Inc\b\.?|LLC\b|Corp\b\.?|Ltd\b\.?|Company\b|Co\.)",)),
    "LOCATION": (0.5, (rf"\b{WORD}(?:\s+{WORD})?,\s+[A-Z]{{2,}}\b",)),
}


def extract_entities(text: str, entity_types=(), min_confidence: float = 0.5) -> dict:
    found, counts = [], {}
    for kind in entity_types or KINDS:
        confidence, patterns = KINDS[kind]
        if confidence < min_confidence:
            continue
        for start, end in spans(text, patterns):
            found.append({"text": text[start:end], "type": kind, "confidence": confidence,
                          "start_pos": start, "end_pos": end})
            counts[kind] = counts.get(kind, 0) + 1
    found.sort(key=lambda entity: entity["start_pos"])
    return {"entities": found, "total_entities": len(found), "entity_counts": counts}


def spans(text, patterns):
    """Places of all patterns; what begins where an earlier pattern has found something is its."""
    places = []
    for pattern in patterns:
        taken = {start for start, _ in places}
        places += [match.span() for match in re.finditer(pattern, text)
                   if match.start() not in taken]
    return places
