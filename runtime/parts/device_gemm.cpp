#include "parts/device_gemm.h"

#include <algorithm>
#include <span>
#include <vector>

#include "backend/needs.h"
#include "base/error.h"
#include "base/os/machine.h"
#include "gemm/tile_sizes.h"
#include "ir/op.h"

namespace st {
namespace {

constexpr const char* kOwn = "own";
constexpr const char* kChosen = "chosen";

/// Rows and columns that are tried; a device refuses those that are too large for it.
constexpr int64_t kTiles[][2] = {{64, 64}, {128, 64}, {128, 128}, {256, 128}, {256, 256}};

/// Whether the matrix is stored as its transpose. Throws for gaps.
bool is_transposed(const char* name, MatrixStrides strides, int64_t rows, int64_t columns) {
  if (strides == MatrixStrides{columns, 1}) return false;
  require(strides == MatrixStrides{1, rows}, Code::unsupported, "gemm: a device takes matrices without gaps, got strides of ", strides.row,
          " and ", strides.column, " in ", name, " of ", rows, "x", columns);
  return true;
}

Shape stored(int64_t rows, int64_t columns, bool transposed) { return transposed ? Shape{columns, rows} : Shape{rows, columns}; }

int64_t bytes_of(const Operand& x) { return x.elements() * st::bytes_of(x.dtype); }

}  // namespace

/// A call and its kernels. Must not move.
class DeviceGemm::Prepared {
 public:
  Prepared(DeviceGemm& own, const Kernels& kernels) : attrs_(attrs_of(own, kernels)) {
    call_.in = own.in_;
    call_.out = own.out_;
    call_.attrs = &attrs_;
    call_.workspace = own.workspace_->data();
    call_.workspace_bytes = own.workspace_->size();
    kernel_ = own.backend_.prepare(Op::matmul, call_);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;

  void enqueue(Stream& stream) { kernel_->enqueue(stream); }

  static Attrs attrs_of(const DeviceGemm& own, const Kernels& kernels) {
    const GemmProblem& p = own.problem_;
    const TileSizes sizes = sizes_of(kernels.tiles);
    Attrs given = {{"transpose_a", is_transposed("A", p.a, p.m, p.k)}, {"transpose_b", is_transposed("B", p.b, p.k, p.n)}};
    given.set("tiles", Ints(sizes.begin(), sizes.end()));
    if (kernels.name != kChosen) given.set("library", std::string(kernels.name));
    if (p.c_type != p.a_type) given.set("result", std::string("f32"));
    return make_attrs(Op::matmul, given);
  }

 private:
  Attrs attrs_;
  Call call_;
  std::unique_ptr<st::Prepared> kernel_;
};

DeviceGemm::DeviceGemm(Backend& backend, const GemmProblem& problem, const Wish& wish) : backend_(backend), problem_(problem) {
  const GemmProblem& p = problem_;
  check_problem(p, "gemm");
  check_layout(p, "gemm");
  require(p.batch == 1 && p.a_type == p.b_type && (p.c_type == p.a_type || p.c_type == DType::f32), Code::unsupported,
          "gemm: a device multiplies one pair of matrices of one type, with a result of it or of f32");
  require(!is_transposed("C", p.c, p.m, p.n), Code::unsupported, "gemm: a device writes a row-major C");
  const bool transpose_a = is_transposed("A", p.a, p.m, p.k), transpose_b = is_transposed("B", p.b, p.k, p.n);
  in_ = {Operand{{}, p.a_type, stored(p.m, p.k, transpose_a)}, Operand{{}, p.b_type, stored(p.k, p.n, transpose_b)}};
  out_ = {Operand{{}, p.c_type, Shape{p.m, p.n}}};
  const auto memory = [&](Operand& x) {
    auto buffer = backend_.allocate(bytes_of(x), MemoryRole::tensors);
    x.data = buffer->data();
    return buffer;
  };
  kept_ = {wish.tiles, wish.lets_libraries ? kChosen : kOwn};
  const std::array<Type, 2> in = {Type{.dtype = p.a_type, .shape = in_[0].shape, .layout = {}},
                                  Type{.dtype = p.b_type, .shape = in_[1].shape, .layout = {}}};
  const Type out = {.dtype = p.c_type, .shape = out_[0].shape, .layout = {}};
  const int64_t workspace = workspace_need(profile_of(backend_, 1), Op::matmul, in, {&out, 1}, Prepared::attrs_of(*this, kept_));
  a_ = memory(in_[0]), b_ = memory(in_[1]), c_ = memory(out_[0]);
  workspace_ = backend_.allocate(workspace, MemoryRole::workspace);
  stream_ = backend_.make_stream();
  prepared_ = std::make_unique<Prepared>(*this, kept_);
  if (wish.seconds > 0) keep_fastest(wish);
}

DeviceGemm::~DeviceGemm() = default;

/// Shares the time among the tiles, or the one that was asked for, and the library's algorithms.
void DeviceGemm::keep_fastest(const Wish& wish) {
  std::vector<Kernels> candidates;
  if (wish.tiles.mc != 0 || wish.tiles.nc != 0 || wish.tiles.kc != 0) {
    candidates.push_back({wish.tiles, kOwn});
  } else {
    for (const auto& [rows, columns] : kTiles) {
      TileSchedule tiles;
      tiles.mc = rows, tiles.nc = columns;
      candidates.push_back({tiles, kOwn});
    }
    const auto algorithms = wish.lets_libraries ? backend_.product_algorithms() : std::span<const char* const>();
    for (const char* const algorithm : algorithms) {
      const Kernels asked = {TileSchedule{}, algorithm};
      if (!is_there(asked)) break;  // there are no more
      candidates.push_back(asked);
    }
  }
  for (const Kernels& candidate : candidates) consider(candidate, wish.seconds / static_cast<double>(candidates.size()));
}

bool DeviceGemm::is_there(const Kernels& kernels) {
  try {
    const Prepared tried(*this, kernels);
    return true;
  } catch (const Error& error) {
    if (error.code() != Code::unsupported) throw;
    return false;
  }
}

/// Kernels that the device lacks are none.
void DeviceGemm::consider(const Kernels& kernels, double seconds) {
  const double work = 2.0 * static_cast<double>(problem_.m) * static_cast<double>(problem_.n) * static_cast<double>(problem_.k);
  try {
    auto candidate = std::make_unique<Prepared>(*this, kernels);
    const double rate = work / std::max(seconds_of(*candidate, seconds), 1e-9);
    if (rate <= rate_) return;
    rate_ = rate;
    kept_ = kernels;
    prepared_ = std::move(candidate);
  } catch (const Error& error) {
    if (error.code() != Code::unsupported) throw;
  }
}

/// The seconds of one product among many in a row, which hide what a launch takes.
double DeviceGemm::seconds_of(Prepared& prepared, double seconds) {
  constexpr int kMostRuns = 1 << 16;
  prepared.enqueue(*stream_);
  stream_->finish();
  for (int runs = 1;; runs *= 2) {
    const double begin = os::seconds();
    for (int i = 0; i < runs; ++i) prepared.enqueue(*stream_);
    stream_->finish();
    const double taken = os::seconds() - begin;
    if (taken > seconds / 4 || runs >= kMostRuns) return taken / runs;
  }
}

void DeviceGemm::run(const GemmOperands& operands, float alpha, float beta) {
  const GemmEpilogue* const epilogue = operands.epilogue;
  const bool is_plain = epilogue == nullptr || (!epilogue->changes_c() && epilogue->column_sums == nullptr);
  require(alpha == 1 && beta == 0 && is_plain && operands.bias == nullptr && operands.packed_b == nullptr, Code::unsupported,
          "gemm: a device computes C = A B: alpha 1, beta 0, no epilogue and no packed B; use a context of device cpu, or a graph");
  backend_.to_device(in_[0].data, operands.a, bytes_of(in_[0]));
  backend_.to_device(in_[1].data, operands.b, bytes_of(in_[1]));
  prepared_->enqueue(*stream_);
  stream_->finish();
  backend_.to_host(operands.c, out_[0].data, bytes_of(out_[0]));
}

}  // namespace st
