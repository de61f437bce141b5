// The names that kernels are written against, on NVIDIA's devices. tests/cuda/device has the same names for a device that is not there; the
// include path chooses. The files of this folder have the only PTX, the only keywords of CUDA and the only launch.
#pragma once

#include <cstdint>

/// A kernel of blocks of at most `threads` threads: KERNEL(256) name(parameters) { .. }; KERNEL(256, 1): with as many registers as one
/// block of them can have.
#define KERNEL(...) __global__ void __launch_bounds__(__VA_ARGS__)
/// A function that kernels call.
#define DEVICE __device__ inline
/// An array that the threads of a block share; its contents are unspecified when the block begins.
#define SHARED(type, name, count) __shared__ type name[count]
/// Before a loop of a constant number of turns whose arrays are to stay in registers.
#define UNROLL _Pragma("unroll")
/// Before a loop that is long enough as it is.
#define ROLLED _Pragma("unroll 1")

namespace st::cuda {

constexpr int kLanes = 32;  // threads of a warp

DEVICE int thread_index() { return static_cast<int>(threadIdx.x); }  // in its block
DEVICE int block_index() { return static_cast<int>(blockIdx.x); }    // in the grid
DEVICE int block_threads() { return static_cast<int>(blockDim.x); }
DEVICE int grid_blocks() { return static_cast<int>(gridDim.x); }

/// The shared memory that the launch adds for each block (launch.h, Grid), aligned to 16 bytes; its contents are unspecified when the block
/// begins.
template <class T>
DEVICE T* launch_shared() {
  extern __shared__ uint4 of_launch[];
  return reinterpret_cast<T*>(of_launch);
}

/// All threads of the block come to the same call; what they wrote before it is seen after it.
DEVICE void sync_block() { __syncthreads(); }

/// The value of the lane whose number differs in the bits `lanes`. All lanes of the warp come to the same call. Orders no memory.
template <class T>
DEVICE T shuffle_xor(T value, int lanes) {
  return __shfl_xor_sync(~0U, value, lanes);
}

/// Returns the value before. Orders no other memory.
DEVICE unsigned atomic_add(unsigned* place, unsigned value) { return atomicAdd(place, value); }
/// The place keeps the smaller one. Returns the value before. Orders no other memory.
DEVICE uint64_t atomic_min(uint64_t* place, uint64_t value) {
  static_assert(sizeof(unsigned long long) == sizeof(uint64_t));
  return atomicMin(reinterpret_cast<unsigned long long*>(place), static_cast<unsigned long long>(value));
}
/// As one write, which no other thread's is a part of.
DEVICE void atomic_set(uint64_t* place, uint64_t value) {
  atomicExch(reinterpret_cast<unsigned long long*>(place), static_cast<unsigned long long>(value));
}

/// Orders this thread's writes: a thread that sees a later one, and fences too, sees the earlier ones.
DEVICE void fence_device() { __threadfence(); }

}  // namespace st::cuda
