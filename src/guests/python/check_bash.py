# SPDX-License-Identifier: Apache-2.0
"""Looks at a Bash script with Bash's own parser; input and answer as in check.py."""
import subprocess, re
p = subprocess.run(['bash', '-n'], input=inputs['source'], text=True, capture_output=True)
if p.returncode == 0:
    return []
m = re.search(r'line (\d+): (.*)', p.stderr)
return [{'line': int(m.group(1)) if m else 0, 'kind': 'syntax', 'message': m.group(2) if m else p.stderr}]
