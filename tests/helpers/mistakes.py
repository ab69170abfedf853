"""What is said of a call that is refused."""

from __future__ import annotations

from typing import Any

import pytest

from allotment.errors import InputError


def mistakes_of(call: Any, *args: Any, **settings: Any) -> str:
    with pytest.raises(InputError) as caught:
        call(*args, **settings)
    return str(caught.value)
