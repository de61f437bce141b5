"""The rows that a rank reads next, from Python."""

import pytest

import scaletrain as st


def test_ranks_share_an_epoch_and_others_go_on():
    ranks = [st.DistributedSampler(23, rank=rank, size=3, seed=4) for rank in range(3)]
    read = [row for sampler in ranks for row in sampler.next(5).rows]
    assert [sampler.cursor for sampler in ranks] == [15] * 3
    with st.DistributedSampler(23, seed=4) as alone:
        alone.cursor = 15
        read += alone.next(100).rows
        assert alone.next(100).all == 0
        alone.set_epoch(0)
        assert list(alone.next(5).rows) == read[:5]
    assert sorted(read) == list(range(23))


def test_an_epochs_end_is_as_asked():
    for last, second in (("share", [3, 4]), ("drop", []), ("join", [3, 4, 0])):
        sampler = st.DistributedSampler(5, shuffle=False, last=last)
        assert [list(sampler.next(3).rows) for _ in range(2)] == [[0, 1, 2], second]
    with pytest.raises(st.InvalidArgument, match="one of share, drop, join"):
        st.DistributedSampler(5, last="repeat")


def test_a_count_below_one_is_refused_as_it_was_given():
    with pytest.raises(st.InvalidArgument, match="count must be at least 1, got -1"):
        st.DistributedSampler(9).next(-1)
