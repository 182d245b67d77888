# SPDX-License-Identifier: Apache-2.0
"""A Python guest without zygote and cell: drive_python.py SOURCES NATIVE CONTROL_FD."""

import os
import sys

sources, native, control = sys.argv[1:4]
sys.path[:0] = [sources, native]

import guest  # noqa: E402
import retort_guest  # noqa: E402

del sys.path[:2]
sys.set_int_max_str_digits(0)
guest.Guest(int(control), retort_guest, os.getcwd()).serve()
