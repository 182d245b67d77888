# SPDX-License-Identifier: Apache-2.0
"""Which languages this host has, by name, as `retort languages --json` tells."""

import json

from calling import call

INSTALLED = {row["name"]: row for row in json.loads(call("languages", "--json").stdout)}
