# What a CSV text holds: its columns, what they are made of, and the figures of those with numbers.
import csv
import io
import statistics

rows = list(csv.reader(io.StringIO(inputs["csv"]), delimiter=inputs["delimiter"]))
header, body = (rows[0], rows[1:]) if rows else ([], [])


def number(text):
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return None


columns = []
for position, name in enumerate(header):
    cells = [row[position] if position < len(row) else "" for row in body]
    filled = [cell for cell in cells if cell.strip()]
    numbers = [n for n in map(number, filled) if n is not None]
    column = {"name": name, "missing": len(cells) - len(filled), "distinct": len(set(filled))}
    if filled and len(numbers) == len(filled):
        column.update(type="number", min=min(numbers), max=max(numbers),
                      mean=round(statistics.fmean(numbers), 6), median=statistics.median(numbers))
    else:
        column["type"] = "text"
    columns.append(column)

return {"rowCount": len(body), "columnCount": len(header), "columns": columns,
        "preview": [dict(zip(header, row)) for row in body[:inputs["preview"]]]}
