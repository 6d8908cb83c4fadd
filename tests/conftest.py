from pathlib import Path

import pytest
import torch

torch.set_num_threads(1)  # as every worker of the pipeline; two threads on a busy machine are slower than one

ROOT = Path(__file__).parents[1]


@pytest.fixture
def shared_data() -> Path:
    """Real GLUE, SQuAD, Wikipedia, OSCAR and UT1 data, where a checkout has them beside it."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip(f"real data are not at {folder}; this test needs them")
    return folder
