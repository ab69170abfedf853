"""What all tests share: the systems that they are for, and no device that they were not asked to
use."""

from __future__ import annotations

import os

import pytest

if os.name != "posix":
    pytest.exit("the tests need Linux or macOS; on Windows run them in WSL", returncode=1)
if not os.environ.get("ALLOT_TEST_GPU"):
    # tolerances are those of a CPU; a GPU is tested where it is asked for
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
# so that an assertion that fails there shows its values too
pytest.register_assert_rewrite("helpers")
