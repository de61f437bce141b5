"""Why the tile matters: one product with tiles of several sizes, compared with numpy."""

import sys
import time

import numpy

import scaletrain as st

DEVICE = sys.argv[-1] if "--device" in sys.argv else "cpu"  # --device NAME at the end
SIZE = 384


def some_numbers(seed: int) -> numpy.ndarray:
    return numpy.random.default_rng(seed).uniform(-1, 1, (SIZE, SIZE)).astype(numpy.float32)


def main() -> bool:
    a, b, c = some_numbers(1), some_numbers(2), numpy.empty((SIZE, SIZE), numpy.float32)
    plain = a.astype(numpy.float64) @ b
    begin = time.perf_counter()
    numpy.matmul(a, b, out=c)
    print(f"{'numpy':<22} {2e-9 * SIZE**3 / (time.perf_counter() - begin):8.2f} GFLOP/s")

    worst, products = 0.0, 0
    context = st.Context(device=DEVICE)
    for tile in (8, 32, 64, 128, 384, 0):  # 0: the library chooses
        tune = 0 if DEVICE == "cpu" else 20  # a device has rates of kernels that it has measured
        try:
            gemm = st.Gemm(context, SIZE, SIZE, SIZE, tile=(tile, tile, tile), block=(tile, tile), tune_ms=tune)
        except st.Unsupported as error:  # it has few tiles
            print(f"tile {tile:<17} {error}")
            continue
        with gemm:
            best = 0.0  # of several runs, since the first finds cold caches
            for _ in range(5):
                gemm.run(a, b, c)
                best = max(best, gemm.info.flops_per_second)
            info = gemm.info
        difference = float(numpy.abs(c - plain).max())
        worst, products = max(worst, difference), products + 1
        name = "tile " + "x".join(map(str, info.tile)) + ("" if tile else ", chosen")
        print(f"{name:<22} {1e-9 * best:8.2f} GFLOP/s  largest difference {difference:.1e}  {'rounded' if info.adjusted else ''}")
    if products == 0:
        sys.exit(f"{DEVICE} has none of these tiles: nothing was multiplied")
    return worst < 1e-4  # rounding of fp32 sums of 384 products of numbers below 1


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
