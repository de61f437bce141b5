"""Gradients that ranks exchange while backward is running, from Python."""

import numpy
import pytest

import scaletrain as st
from nets import on_each


def test_each_rank_has_the_mean_or_sum_of_all(context):
    def act(own):
        w, v = numpy.full(5, own.rank, numpy.float32), numpy.full(3, 2, numpy.float64)
        with st.DataParallel(own, {"w": w, "v": v}) as parallel:
            parallel.no_sync(True)
            parallel.gradient_ready(0)
            parallel.synchronize()
            assert w[0] == own.rank
            parallel.no_sync(False)
            parallel.gradient_ready(1)
            with pytest.raises(st.WrongState, match="w"):
                parallel.synchronize()
            parallel.gradient_ready(0)
            parallel.synchronize()
        assert (w.tolist(), v.tolist()) == ([1.0] * 5, [2.0] * 3)
        with st.DataParallel(own, {"w": w}, op="sum", bucket_bytes=4) as parallel:
            parallel.gradient_ready(0)
            parallel.synchronize()
        assert w.tolist() == [3.0] * 5
        with pytest.raises(st.InvalidArgument, match="one of sum, mean"):
            st.DataParallel(own, {"w": w}, op="max")

    on_each(st.Communicator.local(context, 3, deadline=20), act)
