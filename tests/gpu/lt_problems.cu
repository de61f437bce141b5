// What cuBLASLt accepts and how fast it is. Lines "product": GPT-2's products; "small": sizes 1 to 16, as digits in lines "counts".
// Usage: lt_problems [accepts|times]. A count is the number of algorithms that the heuristic returns when asked for 16, without split-K in
// memory.
#include <cuda_bf16.h>

#include <map>

#include "lt_product.h"

using namespace probe;

namespace {

constexpr int kAsked = 16;
constexpr size_t kPool = size_t(7) << 29;  // 3.5 GiB: the largest matrix is fp32 logits of 16384 x 50304

struct Model {
  const char* name;
  int64_t width, tokens;
};
const Model kModels[] = {{"124M", 768, 16384}, {"1.5B", 1600, 8192}};

struct Named {
  std::string name;
  Problem problem;
  cublasLtEpilogue_t fused;  // what a training step would fuse into it
};

/// The products of a block and the head, weights [in][out] and the head's [vocabulary][width], as by rows in C; cuBLASLt sees them
/// transposed.
std::vector<Named> products_of(const Model& model) {
  int64_t width = model.width, tokens = model.tokens;
  std::vector<Named> all;
  auto add = [&](const std::string& name, const char* letters, int64_t m, int64_t n, int64_t k, cublasLtEpilogue_t fused) {
    Problem p;
    p.transpose_a = letters[0] == 'T', p.transpose_b = letters[1] == 'T', p.m = m, p.n = n, p.k = k;
    all.push_back({std::string(model.name) + " " + name, p, fused});
  };
  auto linear = [&](const std::string& name, int64_t in, int64_t out, cublasLtEpilogue_t forward, cublasLtEpilogue_t backward) {
    add(name + " forward", "NN", out, tokens, in, forward);
    add(name + " input gradient", "TN", in, tokens, out, backward);
    add(name + " weight gradient", "NT", out, in, tokens, CUBLASLT_EPILOGUE_BGRADA);
  };
  linear("qkv", width, 3 * width, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_DEFAULT);
  linear("projection", width, width, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_DEFAULT);
  linear("up", width, 4 * width, CUBLASLT_EPILOGUE_GELU_AUX_BIAS, CUBLASLT_EPILOGUE_DEFAULT);
  linear("down", 4 * width, width, CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_DGELU);
  for (int64_t vocabulary : {50257, 50304}) {
    std::string head = "head " + std::to_string(vocabulary);
    add(head + " forward", "TN", vocabulary, tokens, width, CUBLASLT_EPILOGUE_DEFAULT);
    add(head + " input gradient", "NN", width, tokens, vocabulary, CUBLASLT_EPILOGUE_DEFAULT);
    add(head + " weight gradient", "NT", width, vocabulary, tokens, CUBLASLT_EPILOGUE_DEFAULT);
  }
  return all;
}

template <class T>
__global__ void fill_normal(T* to, int64_t n, uint32_t seed) {  // near enough: a sum of four uniform numbers
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += int64_t(gridDim.x) * blockDim.x) {
    uint64_t h = (uint64_t(i) + 1) * 0x9e3779b97f4a7c15ull ^ seed;
    h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9ull;
    h = (h ^ h >> 27) * 0x94d049bb133111ebull;
    float sum = float(h & 0xffff) + float(h >> 16 & 0xffff) + float(h >> 32 & 0xffff) + float(h >> 48) - 2 * 65535.0f;
    to[i] = T(sum / 37837.0f);
  }
}

/// Two pools of operands (bf16 or fp32) and room for results; rounds walk through the pools so that L2 does not hold the operands.
struct Pools {
  cudaStream_t stream = new_stream();
  char *a = on_device(kPool), *b = on_device(kPool), *d = on_device(kPool), *auxiliary = on_device(kPool), *vector = on_device(1 << 20);
  char* workspace = on_device(64 << 20);
  void fill(bool narrow) {
    for (char* pool : {a, b, d, auxiliary}) {
      uint32_t seed = pool == a ? 1 : pool == b ? 2 : 3;
      if (narrow)
        fill_normal<<<1056, 256, 0, stream>>>(reinterpret_cast<__nv_bfloat16*>(pool), kPool / 2, seed);
      else
        fill_normal<<<1056, 256, 0, stream>>>(reinterpret_cast<float*>(pool), kPool / 4, seed);
    }
    MUST(cudaStreamSynchronize(stream));
  }
};

struct Timed {
  std::vector<double> first, best, ratio;  // us, us, first / best by round
  int best_index = 0;
};

/// Times every algorithm a few times, then the first and the fastest in turns.
Timed time_of(const Product& product, const Problem& p, const std::vector<Found>& found, Pools& pools, int tries) {
  auto sets = [](size_t bytes) { return int64_t(std::min<size_t>(4, kPool / ((bytes + 255) / 256 * 256))); };
  auto at = [&](char* pool, size_t bytes, int round) { return pool + round % sets(bytes) * int64_t((bytes + 255) / 256 * 256); };
  auto once = [&](size_t which, int round) {
    MUST(product.run(found[which].algo, at(pools.a, p.a_bytes(), round), at(pools.b, p.b_bytes(), round), at(pools.d, p.d_bytes(), round),
                     pools.workspace, pools.stream));
  };
  Timed timed;
  std::vector<double> each;
  for (size_t i = 0; i < found.size(); ++i) {
    for (int r = 0; r < 2; ++r) once(i, r);
    cudaEvent_t begin, end;
    MUST(cudaEventCreate(&begin));
    MUST(cudaEventCreate(&end));
    MUST(cudaEventRecord(begin, pools.stream));
    for (int r = 0; r < tries; ++r) once(i, r);
    MUST(cudaEventRecord(end, pools.stream));
    MUST(cudaEventSynchronize(end));
    float ms = 0;
    MUST(cudaEventElapsedTime(&ms, begin, end));
    each.push_back(ms / tries);
  }
  timed.best_index = int(std::min_element(each.begin(), each.end()) - each.begin());
  for (int round = 0; round < 20; ++round)
    for (bool best : {false, true}) {
      int calls = p.flop() < 1e10 ? 10 : p.flop() < 1e11 ? 3 : 1;
      cudaEvent_t begin, end;
      MUST(cudaEventCreate(&begin));
      MUST(cudaEventCreate(&end));
      once(best ? size_t(timed.best_index) : 0, round);  // the launch's cost falls on this one
      MUST(cudaEventRecord(begin, pools.stream));
      for (int i = 0; i < calls; ++i) once(best ? size_t(timed.best_index) : 0, round + i + 1);
      MUST(cudaEventRecord(end, pools.stream));
      MUST(cudaEventSynchronize(end));
      float ms = 0;
      MUST(cudaEventElapsedTime(&ms, begin, end));
      MUST(cudaEventDestroy(begin));
      MUST(cudaEventDestroy(end));
      (best ? timed.best : timed.first).push_back(ms * 1e3 / calls);
    }
  for (size_t i = 0; i < timed.first.size(); ++i) timed.ratio.push_back(timed.first[i] / timed.best[i]);
  return timed;
}

void describe(Line& line, const Problem& p) {
  line("dtype", p.dtype)("ops", p.letters())("mnk", std::vector<int64_t>{p.m, p.n, p.k})("epilogue", name_of(p.epilogue));
  if (p.beta != 0) line("beta", p.beta);
}

void measure(const CublasLt& lt, const std::string& name, Problem p, Pools& pools, int tries, bool any_reduction) {
  std::vector<Found> found;
  Line line("time", name);
  describe(line, p);
  Product product(lt, p, pools.vector, pools.auxiliary);
  if (product.heuristics(kAsked, found) != 0 || found.empty()) {
    line("count", 0);
    return;
  }
  auto timed = time_of(product, p, found, pools, tries);
  double best = spread(timed.best)[0];
  line("count", found.size())("first_us", spread(timed.first))("best_us", spread(timed.best))("best", timed.best_index)(
      "ratio", spread(timed.ratio))("tflop_s", p.flop() / best / 1e6)("first_config", product.configuration(found[0].algo))(
      "best_config", product.configuration(found[size_t(timed.best_index)].algo))("best_workspace",
                                                                                  found[size_t(timed.best_index)].workspaceSize);
  if (!any_reduction) return;
  p.reductions = CUBLASLT_REDUCTION_SCHEME_MASK;
  Product free(lt, p, pools.vector, pools.auxiliary);
  free.heuristics(kAsked, found);
  timed = time_of(free, p, found, pools, tries);
  line("any_reduction_first_us", spread(timed.first))("any_reduction_best_us", spread(timed.best))(
      "any_reduction_best_config", free.configuration(found[size_t(timed.best_index)].algo));
}

void times(const CublasLt& lt) {
  Pools pools;
  for (const char* dtype : {"bf16", "bf16f", "tf32", "f32"}) {
    bool narrow = dtype[0] == 'b', ieee = dtype == std::string("f32");
    pools.fill(narrow);
    for (int64_t size : {256, 512, 1024, 2048, 4096, 8192}) {
      Problem p;
      p.dtype = dtype, p.transpose_a = true, p.m = p.n = p.k = size;
      if (size < 8192 || !ieee) measure(lt, "square", p, pools, size < 8192 ? 10 : 3, false);
    }
    for (const Model& model : kModels)
      for (auto& named : products_of(model)) {
        bool head = named.name.find("head") != std::string::npos, gradient = named.name.find("weight") != std::string::npos;
        bool odd = named.name.find("50257") != std::string::npos;
        if (dtype == std::string("bf16f") && !gradient) continue;
        if (ieee && (odd || (head && model.width == 1600))) continue;
        Problem p = named.problem;
        p.dtype = dtype;
        measure(lt, named.name, p, pools, ieee ? 1 : p.flop() < 2e11 ? 10 : 3, gradient);
        p.epilogue = named.fused;
        if (named.fused != CUBLASLT_EPILOGUE_DEFAULT && !ieee) measure(lt, named.name, p, pools, 10, false);
        if (gradient && narrow && !head) p.epilogue = CUBLASLT_EPILOGUE_DEFAULT, p.beta = 1, measure(lt, named.name, p, pools, 10, false);
      }
  }
}

const cublasLtEpilogue_t kEpilogues[] = {CUBLASLT_EPILOGUE_DEFAULT,    CUBLASLT_EPILOGUE_BIAS,   CUBLASLT_EPILOGUE_GELU_AUX_BIAS,
                                         CUBLASLT_EPILOGUE_BGRADA,     CUBLASLT_EPILOGUE_BGRADB, CUBLASLT_EPILOGUE_DGELU,
                                         CUBLASLT_EPILOGUE_DGELU_BGRAD};
const char* const kDtypes[] = {"f32", "tf32", "bf16", "bf16f"};

char digit(cublasStatus_t status, const std::vector<Found>& found) {
  return status == 0                             ? "0123456789abcdefg"[found.size()]
         : status == CUBLAS_STATUS_NOT_SUPPORTED ? '-'
         : status == CUBLAS_STATUS_INVALID_VALUE ? 'x'
                                                 : '?';
}

/// GPT-2's products: for each epilogue in the order of kEpilogues a digit for workspaces of 0, 4 and 32 MiB, then with 32 MiB for operands
/// that are aligned to 16 bytes, and to one element only; and the workspace that the first algorithm takes of 32 MiB.
void accepts_products(const CublasLt& lt, char* room) {
  for (const Model& model : kModels)
    for (auto& named : products_of(model))
      for (const char* dtype : kDtypes) {
        std::vector<std::string> counts;
        std::vector<uint64_t> workspaces;
        Problem p = named.problem;
        p.dtype = dtype;
        for (auto epilogue : kEpilogues) {
          p.epilogue = epilogue;
          const uint32_t limits[][2] = {{0, 256}, {4 << 20, 256}, {32 << 20, 256}, {32 << 20, 16}, {32 << 20, p.narrow() ? 2u : 4u}};
          counts.emplace_back();
          for (const auto& [workspace, alignment] : limits) {
            p.workspace = workspace, p.alignment = alignment;
            std::vector<Found> found;
            auto status = Product(lt, p, room, room).heuristics(kAsked, found);
            counts.back() += digit(status, found);
            if (workspace == 32 << 20 && alignment == 256) workspaces.push_back(found.empty() ? 0 : found[0].workspaceSize);
          }
        }
        Line("product", named.name)("dtype", p.dtype)("ops", p.letters())("mnk", std::vector<int64_t>{p.m, p.n, p.k})("counts", counts)(
            "workspace", workspaces);
      }
}

/// m, n, k in 1, 3, 7, 8, 16 (m slowest): a digit is the count, - not supported, x an invalid value. The
/// ids are of the lines "counts", for leading dimensions that are tight, one more, and a multiple of 8, each aligned to 256, 16, 8, 4 and 2
/// bytes.
void accepts_small(const CublasLt& lt, char* room) {
  std::map<std::string, size_t> known;
  for (const char* dtype : kDtypes)
    for (const char* letters : {"NN", "TN", "NT"})
      for (auto epilogue : kEpilogues) {
        std::vector<size_t> rows;
        for (int64_t pad : {0, 1, -8})
          for (uint32_t alignment : {256u, 16u, 8u, 4u, 2u}) {
            std::string digits;
            for (int64_t m : {1, 3, 7, 8, 16})
              for (int64_t n : {1, 3, 7, 8, 16})
                for (int64_t k : {1, 3, 7, 8, 16}) {
                  Problem p;
                  p.dtype = dtype, p.transpose_a = letters[0] == 'T', p.transpose_b = letters[1] == 'T', p.m = m, p.n = n, p.k = k;
                  p.epilogue = epilogue, p.pad = pad, p.alignment = alignment;
                  std::vector<Found> found;
                  auto status = Product(lt, p, room, room).heuristics(kAsked, found);
                  digits += digit(status, found);
                }
            auto [at, fresh] = known.emplace(digits, known.size());
            if (fresh) Line("counts", digits)("id", at->second);
            rows.push_back(at->second);
          }
        Line("small", dtype)("ops", letters)("epilogue", name_of(epilogue))("ids", rows);
      }
}

}  // namespace

int main(int argc, char** argv) {
  CublasLt lt;
  std::string part = argc > 1 ? argv[1] : "accepts";
  std::vector<std::string> epilogues;
  for (auto epilogue : kEpilogues) epilogues.push_back(name_of(epilogue));
  Line("library", "cublasLt")("version", lt.GetVersion())("asked", kAsked)("epilogues", epilogues)("small_sizes",
                                                                                                   std::vector<int>{1, 3, 7, 8, 16});
  if (part == "times") return times(lt), 0;
  char* room = on_device(1 << 20);
  accepts_products(lt, room);
  accepts_small(lt, room);
}
