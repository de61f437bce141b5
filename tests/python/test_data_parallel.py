"""Gradients exchanged between ranks while backward goes on, from Python."""

import threading

import numpy
import pytest

import scaletrain as st


def test_each_rank_has_the_mean_of_all():
    failures = []

    def act(own):
        try:
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
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    with st.Context() as context:
        threads = [threading.Thread(target=act, args=(rank,)) for rank in st.Communicator.local(context, 3, deadline=20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert failures == []
        with pytest.raises(st.InvalidArgument, match="none of sum, mean"):
            st.DataParallel(st.Communicator.local(context, 1)[0], {"w": numpy.ones(3, numpy.float32)}, op="max")
