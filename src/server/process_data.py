# What a large file holds, told in a few lines: rows are read one by one and none is kept.


def summarize_data(inputs):
    import csv
    import io
    import json
    import os

    path = inputs.get("path")


    def lines():
        if path is None:
            return io.StringIO(inputs["data"])
        return open(path, encoding="utf-8-sig", errors="replace", newline="")


    def is_json():
        with lines() as source:
            head = source.read(4096).lstrip()
        return head[:1] in ("{", "[")


    def objects():
        with lines() as source:
            text = source.read(4096)
            source.seek(0)
            if text.lstrip()[:1] == "[":
                yield from (row for row in json.load(source) if isinstance(row, dict))
                return
            for line in source:
                if line.strip():
                    row = json.loads(line)
                    if isinstance(row, dict):
                        yield row


    def rows():
        if is_json():
            yield from objects()
            return
        with lines() as source:
            sample = source.read(8192)
            source.seek(0)
            try:
                dialect = csv.Sniffer().sniff(sample, delimiters=",;\t|")
            except csv.Error:
                dialect = csv.excel
            csv.field_size_limit(1 << 24)
            yield from csv.DictReader(source, dialect=dialect)


    def number(value):
        if isinstance(value, bool) or value is None:
            return None
        try:
            found = float(value)
        except (TypeError, ValueError):
            return None
        return found if found - found == 0 else None


    columns = {}
    seen = set()
    row_count = repeated = 0
    for row in rows():
        row_count += 1
        if row_count <= 1_000_000:
            mark = hash(tuple(map(str, row.values())))
            repeated += mark in seen
            seen.add(mark)
        for name, value in row.items():
            name = str(name)
            if name not in columns:
                if len(columns) >= 1000:
                    continue
                columns[name] = [0, 0, 0.0, None, None]  # filled, numbers, sum, least, most
            column = columns[name]
            if value in (None, ""):
                continue
            column[0] += 1
            n = number(value)
            if n is not None:
                column[1] += 1
                column[2] += n
                column[3] = n if column[3] is None else min(column[3], n)
                column[4] = n if column[4] is None else max(column[4], n)

    findings = []
    if repeated:
        findings.append(f"{repeated} rows are there more than once")
    for name, (filled, numbers, total, least, most) in list(columns.items())[:50]:
        missing = row_count - filled
        if missing:
            findings.append(f"{name}: {missing} of {row_count} values are missing")
        if numbers and numbers == filled:
            findings.append(f"{name}: {least:g} to {most:g}, mean {total / numbers:g}, sum {total:g}")
        elif numbers and numbers > filled * 0.9:
            findings.append(f"{name}: {filled - numbers} values are no numbers, the others are")
    size = os.path.getsize(path) if path is not None else len(inputs["data"].encode())
    return {
        "summary": f"{row_count} rows in {len(columns)} columns, {size} bytes: {', '.join(list(columns)[:20])}",
        "rowCount": row_count,
        "columnCount": len(columns),
        "findings": findings,
    }


return summarize_data(inputs)
