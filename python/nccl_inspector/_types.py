"""What the commands say, as types."""

from typing import Any, Dict

Check = Dict[str, Any]
Summary = Dict[str, Any]
