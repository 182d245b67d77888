# SPDX-License-Identifier: Apache-2.0
"""No memory that can be written is shared with the zygote, or by it with another cell."""

import pytest

LOOK = {
    "python": "return [l for l in open('/proc/self/maps').read().splitlines() if l.split()[1][1] == 'w' and l.split()[1][3] == 's']",
    "javascript": "return require('fs').readFileSync('/proc/self/maps', 'utf8').split('\\n').filter((l) => / .w.s /.test(l))",
    "bash": "RESULT=\"$(grep -E ' .w.s ' /proc/1/maps /proc/$PPID/maps /proc/self/maps 2>/dev/null; true)\"",
}


@pytest.mark.parametrize("language", LOOK)
def test_no_writable_memory_is_shared_with_anybody(run, language):
    answer = run(language, LOOK[language])
    assert answer["success"], answer["error"]
    assert not answer["result"]
