import gc

import pytest

import scaletrain as st


@pytest.fixture
def context():
    with st.Context(threads=1) as made:
        yield made


@pytest.fixture(autouse=True)
def nothing_is_left():
    """Checks that every test frees all objects that it created."""
    gc.collect()
    gc.freeze()  # excludes the objects of NumPy's and PyTorch's modules from every later collection
    before = st.live_handles()
    yield
    gc.collect()
    assert st.live_handles() <= before + 1  # the fixture's own context may be freed later
