# SPDX-License-Identifier: Apache-2.0
"""What people ask for (S1-21 to S1-24), each in the language that suits it."""


def test_the_total_of_these_numbers(execute):
    assert execute("python", "return sum(numbers)", input={"numbers": [19.5, 20.5, 2]})["result"] == 42
    assert execute("sql", "SELECT sum(value) AS total FROM numbers", input={"numbers": [40, 2]})["result"] == [{"total": 42}]


def test_whether_a_configuration_is_valid(execute):
    rules = """const problems = [];
        if (!/^[a-z-]+$/.test(config.name)) problems.push('name: small letters and dashes only');
        if (config.replicas < 1 || config.replicas > 10) problems.push('replicas: 1 to 10');
        return { valid: problems.length === 0, problems };"""
    assert execute("javascript", rules, input={"config": {"name": "shop", "replicas": 3}})["result"] == {"valid": True, "problems": []}
    refused = execute("javascript", rules, input={"config": {"name": "Shop!", "replicas": 30}})["result"]
    assert refused["valid"] is False and len(refused["problems"]) == 2


def test_a_summary_of_last_month(execute):
    code = """SELECT region, count(*) AS orders, round(sum(amount), 2) AS revenue FROM orders
              WHERE date >= :month || '-01' AND date < date(:month || '-01', '+1 month') GROUP BY region ORDER BY revenue DESC"""
    orders = [{"date": "2026-10-03", "region": "north", "amount": 10.25}, {"date": "2026-10-31", "region": "south", "amount": 50},
              {"date": "2026-10-31", "region": "north", "amount": 5}, {"date": "2026-11-01", "region": "north", "amount": 999}]
    assert execute("sql", code, input={"orders": orders, "month": "2026-10"})["result"] == [
        {"region": "south", "orders": 1, "revenue": 50}, {"region": "north", "orders": 2, "revenue": 15.25}]


def test_our_pricing_formula_for_this_quote(execute):
    code = """from decimal import Decimal
def price(quote):
    net = sum(Decimal(str(line["price"])) * line["count"] for line in quote["lines"])
    discount = Decimal("0.1") if net >= 1000 else Decimal(0)
    return {"net": net, "discount": net * discount, "gross": (net - net * discount) * Decimal("1.19")}
return price(quote)"""
    quote = {"lines": [{"price": 99.9, "count": 10}, {"price": 1, "count": 1}]}
    assert execute("python", code, input={"quote": quote})["result"] == {"net": 1000, "discount": 100, "gross": 1071}
