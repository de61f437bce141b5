// Which of cuBLASLt's results have the same bits: repeated, moved, on other streams, in graphs; and whether they are those of one
// accumulator.
#include <cuda_bf16.h>

#include <bit>
#include <cmath>
#include <random>
#include <set>

#include "lt_product.h"
#include "tensor_core.h"

using namespace probe;

namespace {

__device__ uint64_t mixed(uint64_t h) {
  h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
  h = (h ^ h >> 27) * 0x94d049bb133111ebull;
  return h ^ h >> 31;
}

template <class T>
__global__ void digest_kernel(const T* data, int64_t rows, int64_t stride, int64_t n, unsigned long long* sum) {
  unsigned long long mine = 0;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < rows * n; i += int64_t(gridDim.x) * blockDim.x)
    mine += mixed(uint64_t(i + 1) * 0x9e3779b97f4a7c15ull ^ data[i / rows * stride + i % rows]);
  atomicAdd(sum, mine);
}

template <class T>
__global__ void fill_operand(T* to, int64_t n, uint32_t seed) {
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x)
    to[i] = T((float(mixed(uint64_t(i) * 2 + seed) >> 40) - 8388608.0f) * 0x1p-22f);
}

class ProductBits {
 public:
  ProductBits(const CublasLt& lt, const Problem& p, const std::string& name) : lt_(lt), p_(p), name_(name) {
    a_ = on_device(p.a_bytes() + 1024), b_ = on_device(p.b_bytes() + 1024);
    refill(0);
    for (char** pool : {&d_, &d2_}) *pool = on_device(p.d_bytes() + 1024);
    MUST(cudaStreamSynchronize(stream_));
  }
  ~ProductBits() {
    for (void* p : {(void*)a_, (void*)b_, (void*)d_, (void*)d2_, (void*)workspace_, (void*)workspace2_, (void*)sum_}) cudaFree(p);
  }

  void report() {
    Product product(lt_, p_, d_, d_);
    std::vector<Found> found;
    product.heuristics(16, found);
    Line line("product_bits", name_);
    line("dtype", p_.dtype)("ops", p_.letters())("mnk", std::vector<int64_t>{p_.m, p_.n, p_.k})(
        "reductions", p_.reductions == 0 ? "none" : "any")("algorithms", found.size());
    if (found.empty()) return;
    std::set<uint64_t> over_algorithms;
    std::vector<uint64_t> digests;
    int unsteady = 0, split = 0, moved = 0, refused = 0, elsewhere = 0, together = 0, half = 0, half_refused = 0, other_workspace = 0,
        graphs = 0;
    for (auto& algorithm : found) {
      std::set<uint64_t> repeats;
      for (int i = 0; i < 20; ++i) repeats.insert(once(product, algorithm, 0, 0, stream_));
      unsteady += repeats.size() > 1;
      split += product.configuration(algorithm.algo)[3] > 1;
      uint64_t digest = *repeats.begin();
      digests.push_back(digest);
      over_algorithms.insert(digest);
      for (int offset : {16, 32, 64, 128}) {  // operands that were at a multiple of 256 bytes
        refill(offset);
        uint64_t other = once(product, algorithm, offset, offset, stream_);
        refused += other == 0, moved += other != 0 && other != digest;
      }
      refill(0);
      elsewhere += once(product, algorithm, 0, 0, second_) != digest;
      std::swap(workspace_, workspace2_);
      other_workspace += once(product, algorithm, 0, 0, stream_) != digest;
      std::swap(workspace_, workspace2_);
      for (int i = 0; i < 5; ++i) {  // two streams at once, a workspace each
        product.run(algorithm.algo, a_, b_, d_, workspace_, stream_);
        product.run(algorithm.algo, a_, b_, d2_, workspace2_, second_);
      }
      MUST(cudaStreamSynchronize(stream_));
      MUST(cudaStreamSynchronize(second_));
      together += digest_of(d_, p_.n) != digest || digest_of(d2_, p_.n) != digest;
      cudaGraph_t graph;
      cudaGraphExec_t executable;
      MUST(cudaMemsetAsync(d2_, 0xff, p_.d_bytes(), stream_));
      MUST(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal));
      product.run(algorithm.algo, a_, b_, d2_, workspace_, stream_);
      MUST(cudaStreamEndCapture(stream_, &graph));
      MUST(cudaGraphInstantiate(&executable, graph, 0));
      MUST(cudaGraphLaunch(executable, stream_));
      graphs += digest_of(d2_, p_.n) != digest;
      MUST(cudaGraphExecDestroy(executable));
      MUST(cudaGraphDestroy(graph));
      if (!p_.transpose_b) {  // half the columns (tokens) with the same algorithm
        uint64_t whole_half = (once(product, algorithm, 0, 0, stream_), digest_of(d_, p_.n / 2));
        Problem q = p_;
        q.n /= 2;
        Product less(lt_, q, d_, d_);
        bool ran = less.run(algorithm.algo, a_, b_, d2_, workspace_, stream_) == 0;
        half_refused += !ran, half += ran && digest_of(d2_, p_.n / 2) != whole_half;
      }
    }
    line("with_split_k", split)("not_repeatable_in_20", unsteady)("distinct_over_algorithms", over_algorithms.size())(
        "differ_at_offsets_16_32_64_128", moved)("refused_at_offsets", refused)("differ_in_a_graph", graphs)(
        "differ_on_another_stream", elsewhere)("differ_with_another_workspace", other_workspace)("differ_on_two_streams_at_once", together);
    if (!p_.transpose_b) line("differ_with_half_the_tokens", half)("refused_with_half_the_tokens", half_refused);
    for (uint32_t alignment : {16u, 2u * uint32_t(p_.operand_bytes() / 2)}) {  // does the first choice change with what is promised?
      Problem q = p_;
      q.alignment = alignment;
      Product same(lt_, q, d_, d_);
      std::vector<Found> other;
      same.heuristics(1, other);
      std::string key = "first_at_alignment_" + std::to_string(alignment);
      line(key.c_str(), other.empty() ? "none" : once(same, other[0], 0, 0, stream_) == digests[0] ? "same bits" : "other bits");
    }
    if (!p_.transpose_b) {
      Problem q = p_;
      q.n /= 2;
      Product less(lt_, q, d_, d_);
      std::vector<Found> other;
      less.heuristics(1, other);
      once(product, found[0], 0, 0, stream_);
      uint64_t whole_half = digest_of(d_, p_.n / 2);
      bool ran = !other.empty() && less.run(other[0].algo, a_, b_, d2_, workspace_, stream_) == 0;
      line("first_for_half_the_tokens", !ran ? "none" : digest_of(d2_, p_.n / 2) == whole_half ? "same bits" : "other bits");
    }
  }

 private:
  void fill(char* to, size_t bytes, uint32_t seed) {
    if (p_.narrow())
      fill_operand<<<528, 256, 0, stream_>>>(reinterpret_cast<__nv_bfloat16*>(to), int64_t(bytes / 2), seed);
    else
      fill_operand<<<528, 256, 0, stream_>>>(reinterpret_cast<float*>(to), int64_t(bytes / 4), seed);
  }
  void refill(int offset) { fill(a_ + offset, p_.a_bytes(), 1), fill(b_ + offset, p_.b_bytes(), 2); }

  uint64_t digest_of(const char* d, int64_t columns, int offset = 0) {
    MUST(cudaMemsetAsync(sum_, 0, 8, stream_));
    if (p_.result_bytes() == 2)
      digest_kernel<<<528, 256, 0, stream_>>>(reinterpret_cast<const uint16_t*>(d + offset), p_.m, p_.ldd(), columns, sum_);
    else
      digest_kernel<<<528, 256, 0, stream_>>>(reinterpret_cast<const uint32_t*>(d + offset), p_.m, p_.ldd(), columns, sum_);
    unsigned long long sum = 0;
    MUST(cudaMemcpyAsync(&sum, sum_, 8, cudaMemcpyDeviceToHost, stream_));
    MUST(cudaStreamSynchronize(stream_));
    return sum;
  }

  /// The digest of one run into a poisoned result, or 0 if cuBLASLt refuses it.
  uint64_t once(const Product& product, const Found& algorithm, int operand_offset, int result_offset, cudaStream_t stream) {
    MUST(cudaMemsetAsync(d_, 0xff, p_.d_bytes() + 1024, stream));
    MUST(cudaMemsetAsync(workspace_, 0xff, 32 << 20, stream));
    MUST(cudaStreamSynchronize(stream_));
    auto status = product.run(algorithm.algo, a_ + operand_offset, b_ + operand_offset, d_ + result_offset, workspace_, stream);
    MUST(cudaStreamSynchronize(stream));
    return status == 0 ? digest_of(d_, p_.n, result_offset) : 0;
  }

  const CublasLt& lt_;
  Problem p_;
  std::string name_;
  cudaStream_t stream_ = new_stream(), second_ = new_stream();
  char *a_ = nullptr, *b_ = nullptr, *d_ = nullptr, *d2_ = nullptr, *workspace_ = on_device(32 << 20), *workspace2_ = on_device(32 << 20);
  unsigned long long* sum_ = on_device<unsigned long long>(1);
};

void products() {
  CublasLt lt;
  struct Shape {
    const char *name, *letters;
    int64_t m, n, k;
  };
  const Shape shapes[] = {{"projection forward", "NN", 768, 16384, 768},
                          {"projection input gradient", "TN", 768, 16384, 768},
                          {"projection weight gradient", "NT", 768, 768, 16384},
                          {"up weight gradient", "NT", 3072, 768, 16384},
                          {"1.5B down forward", "NN", 1600, 8192, 6400},
                          {"8 tokens", "NN", 3072, 8, 768},
                          {"head of 50257, input gradient", "NN", 768, 2048, 50257}};
  for (const auto& shape : shapes)
    for (const char* dtype : {"bf16", "bf16f", "tf32", "f32"})
      for (uint32_t reductions : {0u, uint32_t(CUBLASLT_REDUCTION_SCHEME_MASK)}) {
        Problem p;
        p.dtype = dtype, p.transpose_a = shape.letters[0] == 'T', p.transpose_b = shape.letters[1] == 'T';
        p.m = shape.m, p.n = shape.n, p.k = shape.k, p.reductions = reductions;
        ProductBits(lt, p, shape.name).report();
      }
}

/// Whether cuBLASLt's bits are those of one accumulator that takes K in order: by the tensor core's model of 16 (bf16) or 8 (tf32) terms a
/// step, or one fma a term (f32). Operands are exact in the type; 4096 results are looked at.
void in_order(const CublasLt& lt, Problem p) {
  int64_t m = p.m, n = p.n, k = p.k, samples = 4096;
  uint32_t kept = p.narrow() ? 0xffff0000u : p.dtype == "tf32" ? 0xffffe000u : ~0u;
  int step = p.narrow() ? 16 : p.dtype == "tf32" ? 8 : 1;
  std::mt19937 g(9);
  std::vector<float> a(size_t(m * k)), b(size_t(n * k)), model, got(size_t(m * n));  // a [m][k], b [n][k]
  for (auto* v : {&a, &b})
    for (float& x : *v) {
      uint32_t bits = uint32_t(g());
      x = std::bit_cast<float>(((bits & 0x807fffffu) | (123 + (bits >> 23) % 8) << 23) & kept);
    }
  std::vector<double> exact;
  std::vector<int64_t> at;
  for (int64_t s = 0; s < samples; ++s) {
    at.push_back(int64_t(g()) % (m * n));
    const float *x = &a[size_t(at.back() % m * k)], *y = &b[size_t(at.back() / m * k)];
    float sum = 0;
    double right = 0;
    for (int64_t q = 0; q < k; q += step)
      sum = step == 1 ? std::fmaf(x[q], y[q], sum) : (step == 16 ? kTensorCore16 : kTensorCore8)(sum, step, [&](int t) {
        return q + t < k ? std::pair(x[q + t], y[q + t]) : std::pair(0.0f, 0.0f);
      });
    for (int64_t q = 0; q < k; ++q) right += double(x[q]) * y[q];
    model.push_back(sum), exact.push_back(right);
  }
  char *da = on_device(p.a_bytes()), *db = on_device(p.b_bytes()), *dd = on_device(p.d_bytes()), *workspace = on_device(32 << 20);
  auto send = [&](char* to, const std::vector<float>& v, int64_t rows, bool k_first) {  // by columns, K first is v itself
    std::vector<float> wide(v);
    for (int64_t r = 0; r < rows && !k_first; ++r)
      for (int64_t q = 0; q < k; ++q) wide[size_t(q * rows + r)] = v[size_t(r * k + q)];
    std::vector<__nv_bfloat16> narrow;
    if (p.narrow()) narrow.assign(wide.begin(), wide.end());
    MUST(
        cudaMemcpy(to, p.narrow() ? static_cast<void*>(narrow.data()) : wide.data(), v.size() * p.operand_bytes(), cudaMemcpyHostToDevice));
  };
  send(da, a, m, p.transpose_a), send(db, b, n, !p.transpose_b);
  Product product(lt, p, dd, dd);
  std::vector<Found> found;
  product.heuristics(16, found);
  std::vector<double> shares, errors;
  std::vector<int> algorithms;
  cudaStream_t stream = new_stream();
  for (auto& algorithm : found) {
    MUST(product.run(algorithm.algo, da, db, dd, workspace, stream));
    MUST(cudaMemcpyAsync(got.data(), dd, got.size() * 4, cudaMemcpyDeviceToHost, stream));
    MUST(cudaStreamSynchronize(stream));
    double off = 0, norm = 0;
    int same = 0;
    for (int64_t s = 0; s < samples; ++s) {
      float v = got[size_t(at[size_t(s)])];
      double right = exact[size_t(s)];
      same += std::bit_cast<uint32_t>(v) == std::bit_cast<uint32_t>(model[size_t(s)]), off += (v - right) * (v - right),
          norm += right * right;
    }
    shares.push_back(double(same) / double(samples)), errors.push_back(std::sqrt(off / norm));
    algorithms.push_back(product.configuration(algorithm.algo)[0]);
  }
  Line("in_order", p.dtype)("ops", p.letters())("mnk", std::vector<int64_t>{m, n, k})("algorithms", algorithms)("share_of_bits", shares)(
      "relative_error", errors);
  for (char* data : {da, db, dd, workspace}) MUST(cudaFree(data));
}

void in_order() {
  CublasLt lt;
  struct Shape {
    const char* letters;
    int64_t m, n, k;
  };
  const Shape shapes[] = {{"NN", 256, 512, 768}, {"TN", 256, 512, 768},   {"NT", 256, 512, 768},  {"NN", 768, 1024, 3072},
                          {"NN", 3072, 8, 768},  {"NT", 768, 768, 16384}, {"NN", 768, 256, 50257}};
  for (const char* dtype : {"bf16f", "tf32", "f32"})
    for (const auto& shape : shapes) {
      Problem p;
      p.dtype = dtype, p.transpose_a = shape.letters[0] == 'T', p.transpose_b = shape.letters[1] == 'T', p.m = shape.m, p.n = shape.n,
      p.k = shape.k;
      in_order(lt, p);
    }
}

}  // namespace

int main() {
  products();
  in_order();
}
