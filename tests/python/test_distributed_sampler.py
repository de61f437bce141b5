"""Which rows a rank reads next, from Python."""

import pytest

import scaletrain as st


def test_ranks_share_an_epoch_and_others_go_on():
    ranks = [st.DistributedSampler(23, rank=rank, size=3, seed=4) for rank in range(3)]
    read = []
    for sampler in ranks:
        rows, together = sampler.next(5)
        assert (len(rows), together, sampler.cursor) == (5, 15, 15)
        read += rows
    with st.DistributedSampler(23, seed=4) as alone:
        alone.cursor = 15
        read += alone.next(100).rows
        assert (alone.cursor, alone.next(100).all) == (23, 0)
        alone.set_epoch(0)
        assert list(alone.next(5).rows) == read[:5]
    assert sorted(read) == list(range(23))


def test_an_epochs_end_is_as_asked():
    def epoch(last):
        sampler = st.DistributedSampler(5, shuffle=False, last=last)
        return [list(sampler.next(3).rows) for _ in range(3)]

    assert epoch("share") == [[0, 1, 2], [3, 4], []]
    assert epoch("drop") == [[0, 1, 2], [], [0, 1, 2]]
    assert epoch("join") == [[0, 1, 2], [3, 4, 0], [1, 2, 3]]
    with pytest.raises(st.InvalidArgument, match="none of share, drop, join"):
        epoch("repeat")
    with pytest.raises(st.InvalidArgument, match="rank is 2"):
        st.DistributedSampler(5, rank=2, size=2)
    with pytest.raises(st.InvalidArgument, match="count is 0"):
        st.DistributedSampler(5).next(0)
