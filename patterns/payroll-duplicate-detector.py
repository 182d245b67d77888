# Entries of a payroll that are there more than once: same person, same period, same amount.
def amount(value):
    try:
        return round(float(str(value).replace(",", "")), 2)
    except ValueError:
        return str(value).strip().lower()


def key(record):
    parts = []
    for field in inputs["keys"]:
        value = record.get(field)
        parts.append(amount(value) if field == inputs["amount"] else str(value).strip().lower())
    return tuple(parts)


groups = {}
for position, record in enumerate(inputs["records"]):
    groups.setdefault(key(record), []).append(position)

duplicates = []
for same in groups.values():
    if len(same) > 1:
        first = inputs["records"][same[0]]
        duplicates.append({"rows": same, "count": len(same), "record": {k: first.get(k) for k in inputs["keys"]}})

overpaid = 0.0
for entry in duplicates:
    value = amount(entry["record"].get(inputs["amount"], 0))
    if isinstance(value, float):
        overpaid += value * (entry["count"] - 1)

return {
    "total": len(inputs["records"]),
    "duplicateGroups": len(duplicates),
    "duplicateRows": sum(entry["count"] - 1 for entry in duplicates),
    "overpaid": round(overpaid, 2),
    "duplicates": duplicates[:50],
}
