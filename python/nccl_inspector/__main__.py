"""``python -m nccl_inspector ARGUMENT...`` is the command ``nccl-inspector``."""

import os
import sys

from ._programs import InspectorError, command

try:
    path = command()
except InspectorError as e:
    sys.exit(str(e))
os.execv(path, [path] + sys.argv[1:])
