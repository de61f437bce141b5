// The kernels are written on the names in <device/..> alone, so that g++ compiles them for the simulated device too.
#include "wrapper_probes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <device/launch.h>

#include "../cuda/block_sums.cuh"
#include "../cuda/staged_copies.cuh"
#include "base/float16.h"
#include "hopper_kernels.h"
#include "probe.h"
#include "probe_kernels.cuh"
#include "tensor_core.h"

namespace st {
namespace {

using namespace st::cuda;
using probe::Line;

StreamHandle stream = nullptr;  // of all probes

/// Memory of the device.
template <class T>
class Array {
 public:
  explicit Array(const std::vector<T>& values) : Array(values.size()) {
    MUST(cudaMemcpyAsync(data_, values.data(), count_ * sizeof(T), cudaMemcpyHostToDevice, stream));
    MUST(cudaStreamSynchronize(stream));
  }
  explicit Array(size_t count) : count_(count) {
    void* data = nullptr;
    MUST(cudaMalloc(&data, count * sizeof(T)));
    data_ = static_cast<T*>(data);
  }
  ~Array() { cudaFree(data_); }
  Array(const Array&) = delete;
  Array& operator=(const Array&) = delete;

  T* data() { return data_; }
  std::vector<T> taken() {
    std::vector<T> values(count_);
    MUST(cudaGetLastError());
    MUST(cudaMemcpyAsync(values.data(), data_, count_ * sizeof(T), cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    return values;
  }

 private:
  size_t count_;
  T* data_ = nullptr;
};

uint16_t half_of_number(Half type, float x) { return type == Half::bf16 ? bf16_of(x) : f16_of(x); }
float number_of_half(Half type, uint16_t bits) { return type == Half::bf16 ? f32_of_bf16(bits) : st::f32_of_f16(bits); }

/// c [rows, columns] += a b^T of b [columns, depth], in fp64; by tensor_core.h if `as_a_device`, in order of k.
std::vector<float> product(Half type, const std::vector<uint16_t>& a, const std::vector<uint16_t>& b, std::vector<float> c, size_t columns,
                           size_t depth, bool as_a_device) {
  for (size_t i = 0; i < c.size(); ++i) {
    const uint16_t *const x = &a[i / columns * depth], *const y = &b[i % columns * depth];
    double sum = static_cast<double>(c[i]);
    for (size_t k = 0; k < depth; ++k)
      sum += static_cast<double>(number_of_half(type, x[k])) * static_cast<double>(number_of_half(type, y[k]));
    if (!as_a_device) {
      c[i] = static_cast<float>(sum);
      continue;
    }
    for (size_t k = 0; k < depth; k += 16)
      c[i] = probe::kTensorCore16(c[i], 16, [&](int at) {
        return std::pair(number_of_half(type, x[k + static_cast<size_t>(at)]), number_of_half(type, y[k + static_cast<size_t>(at)]));
      });
  }
  return c;
}

class Probes {
 public:
  Probes() { MUST(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)); }
  ~Probes() { cudaStreamDestroy(stream); }
  Probes(const Probes&) = delete;
  Probes& operator=(const Probes&) = delete;

  int64_t different() const { return different_; }

  void threads() {
    const std::vector<float> x = numbers(64);
    Array<float> in(x), out(64 * 5);
    launch(stream, {1, 64}, shuffle_each, in.data(), out.data());
    std::vector<float> wanted;
    for (size_t thread = 0; thread < 64; ++thread)
      for (size_t i = 0; i < 5; ++i) wanted.push_back(x[thread ^ size_t{1} << i]);
    compare("shuffle_xor", out, wanted);

    constexpr int kBlocks = 40;
    std::vector<uint64_t> words(64 * kBlocks);
    for (uint64_t& word : words) word = uint64_t{random_()} << 32 | random_();
    Array<uint64_t> all(words), least(std::vector<uint64_t>{~uint64_t{0}}), last(std::vector<uint64_t>{0});
    Array<unsigned> counts(std::vector<unsigned>(2));
    launch(stream, {kBlocks, 64}, count_and_compare, all.data(), counts.data(), least.data(), last.data());
    compare("atomic_add", counts, {64 * kBlocks, kBlocks});
    compare("atomic_min", least, {*std::ranges::min_element(words)});
    const uint64_t kept = last.taken()[0];
    say("atomic_set", 1, std::ranges::find(words, kept) == words.end() ? 1 : 0);
  }

  /// The last block to come adds what the others have written.
  void fences() {
    for (const int blocks : {3, 64}) {
      Array<float> x(std::vector<float>(static_cast<size_t>(blocks * kSumThreads), 0.5F)), sums(static_cast<size_t>(blocks)), sum(1);
      Array<unsigned> arrived(std::vector<unsigned>{0});
      launch(stream, {blocks, kSumThreads}, sum_twice<Fault::none>, x.data(), sums.data(), arrived.data(), sum.data());
      compare(text("fence_device, ", blocks, " blocks"), sum, {static_cast<float>(blocks * kSumThreads)});
    }
  }

  void conversions() {
    std::vector<float> x = numbers(1000);
    for (const uint32_t bits :
         {0U, 0x80000000U, 0x7F800000U, 0xFF800000U, 0x7FC01234U, 0x7F7FFFFFU, 0x3F808000U, 0x3F818000U, 0x33000001U, 0x477FF000U})
      x.push_back(std::bit_cast<float>(bits));
    const int pairs = static_cast<int>(x.size() / 2);
    Array<float> in(x);
    Array<uint32_t> bf16(static_cast<size_t>(pairs)), f16(static_cast<size_t>(pairs));
    launch(stream, {1, kLanes}, round_pairs, in.data(), bf16.data(), f16.data(), pairs);
    const auto pairs_of = [&](Half type) {
      std::vector<uint32_t> all;
      for (size_t i = 0; i < x.size(); i += 2) {
        const auto rounded = [&](float v) { return std::isnan(v) ? 0x7FFFU : uint32_t{half_of_number(type, v)}; };
        all.push_back(rounded(x[i]) | rounded(x[i + 1]) << 16);
      }
      return all;
    };
    compare("bf16_pair_of", bf16, pairs_of(Half::bf16));
    compare("f16_pair_of", f16, pairs_of(Half::f16));
    std::vector<uint16_t> halves;
    for (uint32_t bits = 0; bits < 0x7C00; bits += 7) halves.push_back(static_cast<uint16_t>(bits));  // NaN apart, which is the device's
    std::vector<float> wide(halves.size());
    std::ranges::transform(halves, wide.begin(), [](uint16_t bits) { return st::f32_of_f16(bits); });
    Array<uint16_t> narrow(halves);
    Array<float> widened(halves.size());
    launch(stream, {1, kLanes}, widen, narrow.data(), widened.data(), static_cast<int>(halves.size()));
    compare("f32_of_f16", widened, wide);
  }

  void outer() {
    const std::vector<float> a = numbers(kLanes * 4), b = numbers(kLanes * 4);
    std::vector<float> sums = numbers(kLanes * 16);
    Array<float> of_a(a), of_b(b), of_sums(sums);
    launch(stream, {1, kLanes}, add_outer, of_a.data(), of_b.data(), of_sums.data());
    for (size_t i = 0; i < sums.size(); ++i) sums[i] = std::fma(a[i / 16 * 4 + i % 16 / 4], b[i / 16 * 4 + i % 4], sums[i]);
    compare("add_outer_product", of_sums, sums);
  }

  void matrices() {
    std::vector<uint16_t> x(kLanes * 8);
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i);
    Array<uint16_t> in(x);
    Array<uint32_t> out(size_t{2} * kLanes * 4);
    launch(stream, {1, kLanes}, load_both_ways, in.data(), out.data());
    std::vector<uint32_t> wanted;
    for (const bool transposed : {false, true})
      for (uint32_t lane = 0; lane < kLanes; ++lane)
        for (uint32_t matrix = 0; matrix < 4; ++matrix) {
          const uint32_t line = lane / 4, first = lane % 4 * 2, step = transposed ? 8 : 1;
          const uint32_t at = matrix * 64 + (transposed ? first * 8 + line : line * 8 + first);
          wanted.push_back(at | (at + step) << 16);
        }
    compare("load_matrices", out, wanted);
  }

  template <Half kType>
  void fragments() {
    constexpr size_t kBlocks = 8;
    for (const bool are_whole : {true, false}) {
      const std::vector<uint16_t> a = halves(kType, kBlocks * 256, are_whole), b = halves(kType, kBlocks * 128, are_whole);
      const std::vector<float> c = are_whole ? whole(kBlocks * 128) : numbers(kBlocks * 128);
      Array<uint16_t> of_a(a), of_b(b);
      Array<float> sums(c);
      launch(stream, {static_cast<int64_t>(kBlocks), kLanes}, multiply_once<kType>, of_a.data(), of_b.data(), sums.data());
      std::vector<float> wanted;
      for (size_t block = 0; block < kBlocks; ++block) {
        const auto part = [&](const auto& all, size_t count) {
          return std::vector(all.begin() + static_cast<int64_t>(block * count), all.begin() + static_cast<int64_t>((block + 1) * count));
        };
        const std::vector<float> one = product(kType, part(a, 256), part(b, 128), part(c, 128), 8, 16, !are_whole);
        wanted.insert(wanted.end(), one.begin(), one.end());
      }
      give(text("multiply_add of ", kType == Half::bf16 ? "bf16" : "f16"), sums, wanted, are_whole);
    }
  }

  void copies() {
    const std::vector<uint16_t> x = halves(Half::bf16, kLanes * 8, true);
    Array<uint16_t> in(x), out(2 * kLanes * 8);
    launch(stream, {1, kLanes}, copy_parts, in.data(), out.data());
    std::vector<uint16_t> wanted = x;
    for (size_t i = 0; i < x.size(); ++i)
      if (i % 8 >= i / 8 % 9) wanted[i] = 0;
    for (size_t i = 0; i < x.size(); ++i) wanted.push_back(x[(i + 8) % x.size()]);
    compare("copy_async", out, wanted);

    std::vector<FourNumbers> steps(kCopySteps * kCopyThreads);
    std::vector<float> sums(kCopyThreads);
    for (size_t i = 0; i < steps.size(); ++i) {
      steps[i].at[0] = static_cast<float>(i * i % 101);
      sums[(i + kCopyThreads - 1) % kCopyThreads] += steps[i].at[0];
    }
    Array<FourNumbers> of_steps(steps);
    Array<float> of_sums(sums.size());
    launch(stream, {1, kCopyThreads}, sum_copies<CopyFault::none>, of_steps.data()->at, of_sums.data());
    compare("copy_async in stages", of_sums, sums);
  }

  void copy_engine() {
    const std::vector<uint16_t> x = halves(Half::bf16, kLanes * 8, true);
    Array<uint16_t> in(x), out(x.size()), again(x.size());
    probes::copy_by_engine(stream, in.data(), out.data(), again.data());
    compare("copy_bulk", out, x);
    std::vector<uint16_t> twice = x;
    std::copy_n(x.begin(), x.size() / 2, twice.begin() + static_cast<int64_t>(x.size() / 2));
    compare("copy_bulk in a second phase", again, twice);
  }

  template <TileFault kFault>
  void tiles() {
    for (const bool are_whole : {true, false}) {
      // The last tile has columns, and each tile rows, that are not there.
      constexpr int kSteps = 5, kRows = 60, kColumns = kSteps * kTileColumns - 24;
      const std::vector<uint16_t> a = halves(Half::bf16, kRows * kColumns, are_whole), b = halves(Half::bf16, kRows * kColumns, are_whole);
      Array<uint16_t> of_a(a), of_b(b);
      Array<float> c(kRingRows * kRingRows);
      probes::multiply_by_ring(stream, kFault, {of_a.data(), of_b.data(), c.data()}, kRows, kColumns, kSteps);
      give(text("multiply_tiles of copy_tile", fault_name_), c, tile_product(a, b, kRows, kColumns, kSteps * kTileColumns, are_whole),
           are_whole);
    }
  }

  template <TileFault kFault>
  void stored() {
    for (const bool are_whole : {true, false}) {
      const std::vector<uint16_t> a = halves(Half::bf16, 4096, are_whole), b = halves(Half::bf16, 4096, are_whole);
      Array<uint16_t> of_a(a), of_b(b);
      Array<float> c(4096);
      probes::multiply_stored(stream, kFault, {of_a.data(), of_b.data(), c.data()});
      give(text("multiply_tiles of stores", fault_name_), c, tile_product(a, b, 64, 64, 64, are_whole), are_whole);
    }
  }

  void graph() {
    Array<uint64_t> all(std::vector<uint64_t>(64, 7)), least(std::vector<uint64_t>{9}), last(std::vector<uint64_t>{0});
    Array<unsigned> counts(std::vector<unsigned>(2));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 2; ++i) launch(stream, {1, 64}, count_and_compare, all.data(), counts.data(), least.data(), last.data());
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&made, graph, 0));
    compare("a graph before its launch", counts, {0, 0});
    for (int i = 0; i < 3; ++i) MUST(cudaGraphLaunch(made, stream));
    compare("a graph of 2 kernels, three times", counts, {6 * 64, 6});
    compare("its results", least, {7});
    MUST(cudaGraphExecDestroy(made));
    MUST(cudaGraphDestroy(graph));
  }

  /// CUDA loads a kernel when it is first given to a stream, which is a stream that captures.
  void cold_graph() {
    Array<unsigned> count(std::vector<unsigned>(1));
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    launch(stream, {1, 64}, count_threads, count.data());
    MUST(cudaStreamEndCapture(stream, &graph));
    MUST(cudaGraphInstantiate(&made, graph, 0));
    for (int i = 0; i < 2; ++i) MUST(cudaGraphLaunch(made, stream));
    compare("a graph of a kernel that was not loaded, twice", count, {2 * 64});
    MUST(cudaGraphExecDestroy(made));
    MUST(cudaGraphDestroy(graph));
  }

  /// A kernel whose result is right or wrong.
  template <CopyFault kFault>
  void planted_copies() {
    Array<FourNumbers> x(std::vector<FourNumbers>(kCopySteps * kCopyThreads, {{2, 0, 0, 0}}));
    Array<float> sums(kCopyThreads);
    launch(stream, {1, kCopyThreads}, sum_copies<kFault>, x.data()->at, sums.data());
    compare(text("sum_copies", fault_name_), sums, std::vector<float>(kCopyThreads, 10));
  }
  template <Fault kFault>
  void planted_sums() {
    constexpr int kBlocks = 64;
    Array<float> x(std::vector<float>(kBlocks * kSumThreads, 0.5F)), sums(kBlocks), sum(1);
    Array<unsigned> arrived(std::vector<unsigned>{0});
    launch(stream, {kBlocks, kSumThreads}, sum_twice<kFault>, x.data(), sums.data(), arrived.data(), sum.data());
    compare(text("sum_twice", fault_name_), sum, {kBlocks * kSumThreads});
  }
  void name_fault(std::string_view fault) { fault_name_ = text(", ", fault); }

 private:
  std::vector<float> numbers(size_t count) {
    std::vector<float> all(count);
    for (float& x : all) {  // a sum of uniform numbers: the same bits from every standard library
      x = -2;
      for (int i = 0; i < 4; ++i) x += static_cast<float>(random_() >> 8) * 0x1p-24F;
    }
    return all;
  }
  std::vector<float> whole(size_t count) {
    std::vector<float> all(count);
    for (float& x : all) x = static_cast<float>(static_cast<int>(random_() % 17) - 8);
    return all;
  }
  std::vector<uint16_t> halves(Half type, size_t count, bool are_whole) {
    std::vector<uint16_t> all;
    for (const float x : are_whole ? whole(count) : numbers(count)) all.push_back(half_of_number(type, x));
    return all;
  }
  /// [64, 64] of matrices that end before.
  static std::vector<float> tile_product(const std::vector<uint16_t>& a, const std::vector<uint16_t>& b, size_t rows, size_t columns,
                                         size_t depth, bool are_whole) {
    const auto padded = [&](const std::vector<uint16_t>& x) {
      std::vector<uint16_t> all(64 * depth);
      for (size_t row = 0; row < rows; ++row)
        std::copy_n(x.begin() + static_cast<int64_t>(row * columns), columns, all.begin() + static_cast<int64_t>(row * depth));
      return all;
    };
    return product(Half::bf16, padded(a), padded(b), std::vector<float>(4096), 64, depth, !are_whole);
  }

  void say(const std::string& name, size_t count, int64_t different) {
    Line("probe", name)("n", count)("different", different);
    different_ += different;
  }
  template <class T>
  static size_t differences(const std::vector<T>& got, const std::vector<T>& wanted) {
    size_t count = got.size() == wanted.size() ? 0 : 1;
    for (size_t i = 0; i < std::min(got.size(), wanted.size()); ++i) count += std::memcmp(&got[i], &wanted[i], sizeof(T)) != 0 ? 1 : 0;
    return count;
  }
  template <class T>
  void compare(const std::string& name, Array<T>& got, const std::vector<std::type_identity_t<T>>& wanted) {
    say(name, wanted.size(), static_cast<int64_t>(differences(got.taken(), wanted)));
  }
  /// Whole numbers must be equal; the bits of others are a fact.
  void give(const std::string& name, Array<float>& got, const std::vector<float>& wanted, bool are_whole) {
    if (are_whole) return compare(name, got, wanted);
    const auto same = static_cast<double>(wanted.size() - differences(got.taken(), wanted));
    Line("tensor_core", name)("n", wanted.size())("share_of_bits", same / static_cast<double>(wanted.size()));
  }

  std::mt19937 random_{7};
  int64_t different_ = 0;
  std::string fault_name_;
};

/// A probe has numbers of its own.
template <void (Probes::*kRun)()>
int64_t print_probe(const WrapperProbe& self) {
  Probes probes;
  if (self.is_fault) probes.name_fault(self.name);
  (probes.*kRun)();
  return probes.different();
}

template <void (Probes::*kRun)()>
constexpr WrapperProbe probe_of(const char* name, bool needs_sm90a = false, bool is_fault = false) {
  return {name, is_fault, needs_sm90a, print_probe<kRun>};
}

}  // namespace

std::span<const WrapperProbe> wrapper_probes() {
  static constexpr WrapperProbe kAll[] = {
      probe_of<&Probes::cold_graph>("cold_graph"),
      probe_of<&Probes::threads>("threads"),
      probe_of<&Probes::fences>("fences"),
      probe_of<&Probes::conversions>("conversions"),
      probe_of<&Probes::outer>("outer"),
      probe_of<&Probes::matrices>("matrices"),
      probe_of<&Probes::fragments<Half::bf16>>("fragments_bf16"),
      probe_of<&Probes::fragments<Half::f16>>("fragments_f16"),
      probe_of<&Probes::copies>("copies"),
      probe_of<&Probes::copy_engine>("copy_engine", true),
      probe_of<&Probes::tiles<TileFault::none>>("tiles", true),
      probe_of<&Probes::stored<TileFault::none>>("stored", true),
      probe_of<&Probes::graph>("graph"),
      probe_of<&Probes::planted_sums<Fault::no_barrier>>("no_barrier", false, true),
      probe_of<&Probes::planted_sums<Fault::no_second_barrier>>("no_second_barrier", false, true),
      probe_of<&Probes::planted_sums<Fault::no_fence>>("no_fence", false, true),
      probe_of<&Probes::planted_copies<CopyFault::no_copy_wait>>("no_copy_wait", false, true),
      probe_of<&Probes::planted_copies<CopyFault::no_copy_barrier>>("no_copy_barrier", false, true),
      probe_of<&Probes::planted_copies<CopyFault::early_copy>>("early_copy", false, true),
      probe_of<&Probes::tiles<TileFault::no_full_wait>>("no_full_wait", true, true),
      probe_of<&Probes::tiles<TileFault::early_release>>("early_release", true, true),
      probe_of<&Probes::tiles<TileFault::wrong_bytes>>("wrong_bytes", true, true),
      probe_of<&Probes::stored<TileFault::no_proxy_fence>>("no_proxy_fence", true, true),
      probe_of<&Probes::stored<TileFault::no_tile_barrier>>("no_tile_barrier", true, true),
  };
  return kAll;
}

}  // namespace st
