# SPDX-License-Identifier: Apache-2.0
"""Compacts artifacts by one of four strategies. A token is four characters of their JSON.

summarize and merge make each artifact small, however many there are; truncate and intelligent take
artifacts one by one, as they are or reduced, for as long as all of them stay within max_tokens.
Nothing here depends on the order of a set, so equal inputs have equal outputs.
"""

import json

TELLING = ("summary", "text", "claim_text", "verdict", "confidence", "tags", "source", "title",
           "key_points")
WEIGHTY = ("claim_verification", "code_patch")
TEXT_MAX = 200
KEPT = ("id", "type", "created_at", "provenance_refs")


def compact_memory(artifacts, strategy="summarize", max_tokens=2000, preserve_fields=KEPT) -> dict:
    compacted = STRATEGIES[strategy](artifacts, max_tokens, preserve_fields)
    before, after = tokens(artifacts), tokens(compacted)
    return {
        "compacted_artifacts": compacted,
        "original_count": len(artifacts),
        "compacted_count": len(compacted),
        "original_tokens_estimate": before,
        "compacted_tokens_estimate": after,
        "compression_ratio": round(after / before, 3) if before else 1.0,
        "strategy_used": strategy,
        "preserved_artifact_ids": [a["id"] for a in compacted if isinstance(a.get("id"), str)],
    }


def tokens(artifacts):
    return len(json.dumps(artifacts)) // 4


def preserve(artifact, fields):
    return {field: artifact[field] for field in fields if field in artifact}


# -- each by itself --------------------------------------------------------------------------------

def summarize(artifacts, _, fields):
    return [summary_of(artifact, fields) for artifact in artifacts]


def summary_of(artifact, fields):
    content = artifact["content"]
    summary = {key: shorten(content[key]) for key in TELLING if key in content}
    summary["_original_fields"] = len(content)
    return {**preserve(artifact, fields), "content_summary": summary, "compacted": True,
            "original_size": len(json.dumps(artifact))}


def shorten(value):
    is_long = isinstance(value, str) and len(value) > TEXT_MAX
    return value[:TEXT_MAX] + "..." if is_long else value


def merge(artifacts, _, fields):
    groups = {}
    for artifact in artifacts:
        groups.setdefault(artifact["type"], []).append(artifact)
    return [merged(kind, group, fields) for kind, group in groups.items()]


def merged(kind, group, fields):
    contents = [artifact["content"] for artifact in group]
    common = set(contents[0]).intersection(*contents[1:])
    return {**preserve(group[0], fields), "id": "merged_" + kind, "type": kind,
            "merged_count": len(group), "merged_from": [artifact["id"] for artifact in group],
            "aggregated_content": {"count": len(group), "types": ["dict"],
                                   "common_fields": sorted(common)},
            "compacted": True}


# -- until there is no more room -------------------------------------------------------------------

def truncate(artifacts, max_tokens, fields):
    newest = sorted(artifacts, key=lambda artifact: artifact.get("created_at", ""), reverse=True)
    return fill(newest, max_tokens, lambda a: {"truncated": True, **preserve(a, fields)})


def intelligent(artifacts, max_tokens, fields):
    weightiest = sorted(artifacts, key=importance, reverse=True)
    return fill(weightiest, max_tokens, lambda a: summary_of(a, fields))


def importance(artifact):
    confidence = artifact["content"].get("confidence", 0)
    is_number = isinstance(confidence, (int, float)) and not isinstance(confidence, bool)
    return ((2.0 if artifact["type"] in WEIGHTY else 1.0) * (1 + (confidence if is_number else 0))
            * (1.5 if "created_at" in artifact else 1.0))


def fill(artifacts, max_tokens, reduce):
    taken, size = [], 2  # the brackets; each further one has a comma and a blank before it
    for artifact in artifacts:
        for form in (artifact, reduce(artifact)):
            more = len(json.dumps(form)) + (2 if taken else 0)
            if (size + more) // 4 <= max_tokens:
                taken.append(form)
                size += more
                break
        else:
            break
    return taken


STRATEGIES = {"summarize": summarize, "truncate": truncate, "merge": merge,
              "intelligent": intelligent}
