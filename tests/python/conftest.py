import gc

import pytest

import scaletrain as st


@pytest.fixture
def context():
    with st.Context(threads=1) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Every test gives back all that it made."""
    gc.collect()
    gc.freeze()  # what NumPy's and PyTorch's modules hold would be looked at again and again
    before = st.live_handles()
    yield
    gc.collect()
    assert st.live_handles() <= before + 1  # the fixture's own context may go after this
