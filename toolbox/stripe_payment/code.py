# SPDX-License-Identifier: Apache-2.0
# Stripe Payment: one payment intent. The package stripe, where it is installed, makes the request.
import json
import urllib.error
import urllib.parse
import urllib.request

HOST = "api.stripe.com"

def refused(why, host):
    return {"success": False, "error": f"{host} cannot be reached: {why}; the tool needs the grant "
                                       f"allowed_hosts: {host}", "grant": {"allowed_hosts": [host]}}


def with_package(stripe, inputs):
    stripe.api_key = inputs["api_key"]
    return stripe.PaymentIntent.create(amount=inputs["amount"], currency=inputs["currency"],
                                       description=inputs.get("description"))


def with_standard_library(inputs):
    fields = {"amount": inputs["amount"], "currency": inputs["currency"]}
    if inputs.get("description"):
        fields["description"] = inputs["description"]
    request = urllib.request.Request(f"https://{HOST}/v1/payment_intents",
                                     data=urllib.parse.urlencode(fields).encode(),
                                     headers={"Authorization": "Bearer " + inputs["api_key"]})
    with urllib.request.urlopen(request, timeout=20) as answer:
        return json.load(answer)


def pay(inputs):
    try:
        import stripe
    except ImportError:
        stripe = None
    intent = with_package(stripe, inputs) if stripe else with_standard_library(inputs)
    return {key: intent[key] for key in ("id", "amount", "currency", "status", "client_secret")}


try:
    result = {"success": True, "data": pay(inputs)}
except KeyError as why:
    result = {"success": False, "error": f"{why} is missing"}
except urllib.error.HTTPError as why:
    result = {"success": False, "error": f"Stripe answered {why.code}: {why.read(500).decode(errors='replace')}"}
except OSError as why:
    result = refused(why, HOST)
return result
