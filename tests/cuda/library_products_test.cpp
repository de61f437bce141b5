// Products by cuBLASLt on the simulated device, through a library in its place (fake_cublaslt.cpp): what is given to it, and what is not.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>

#include "backend/cuda/product_choice.h"
#include "backend/cuda/product_table.h"
#include "backend/device_registry.h"
#include "backend/reference/elements.h"
#include "base/float_mode.h"
#include "base/os/loaded_library.h"
#include "base/workers.h"
#include "device_call.h"
#include "fake_cublaslt.h"
#include "parts/device_gemm.h"
#include "thrown_error.h"

namespace st {
namespace {

using cuda::MeasuredProduct;
using cuda::ProductKey;
using cuda::ProductTable;

constexpr const char* kTable = "SCALETRAIN_CUDA_PRODUCTS";
constexpr const char* kLibrary = "SCALETRAIN_SIMULATED_CUBLASLT";
constexpr size_t kVersion = 130100;

/// Elements in the host's memory, as bytes of their type.
struct Numbers {
  Numbers(DType type, const Shape& own_shape, uint64_t seed) : dtype(type), shape(own_shape), bytes(size()) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> deviate;
    for (int64_t i = 0; i < shape.elements(); ++i) reference::set(operand(), i, deviate(random));
  }
  Numbers(DType type, const Shape& own_shape) : dtype(type), shape(own_shape), bytes(size()) {}
  size_t size() const { return static_cast<size_t>(shape.elements() * bytes_of(dtype)); }
  Operand operand() const { return {{reinterpret_cast<uintptr_t>(bytes.data())}, dtype, shape}; }
  double at(int64_t i) const { return reference::get(operand(), i); }

  DType dtype;
  Shape shape;
  std::vector<uint8_t> bytes;
};

struct Sizes {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
};

double unit_at(double x, DType dtype) {
  const int digits = dtype == DType::f32 ? 23 : dtype == DType::bf16 ? 7 : 10;
  return std::ldexp(1.0, std::ilogb(x == 0 ? 1e-30 : x) - digits);
}

class LibraryProducts : public testing::Test {
 protected:
  LibraryProducts() { setenv(kLibrary, "1", 1); }
  ~LibraryProducts() override {
    unsetenv(kTable);
    unsetenv(kLibrary);
    std::filesystem::remove(file_);
  }

  static std::unique_ptr<Backend> device() { return open_device("cuda-simulated:1", nullptr); }
  static std::unique_ptr<Backend> device_without_library() {
    unsetenv(kLibrary);
    auto made = device();
    setenv(kLibrary, "1", 1);
    return made;
  }
  /// The library's own counts; it is loaded by now.
  static FakeCublasLt counts() { return *os::LoadedLibrary::if_open("libcublasLt.so.13")->need<AskFakeCublasLt>("st_fake_cublaslt")(); }

  void use_table(const ProductTable& table) {
    std::ofstream(file_) << table.text();
    setenv(kTable, file_.c_str(), 1);
  }

  static DeviceCall call_of(Backend& backend, Op op, const std::vector<Numbers>& in, const std::vector<Numbers>& out, const Attrs& attrs) {
    DeviceCall call(backend, op, attrs);
    for (const Numbers& x : in) call.input<uint8_t>(x.dtype, x.shape, x.bytes);
    for (const Numbers& y : out) call.output(y.dtype, y.shape);
    return call;
  }
  static std::vector<std::vector<uint8_t>> run(Backend& backend, Op op, const std::vector<Numbers>& in, const std::vector<Numbers>& out,
                                               const Attrs& attrs) {
    DeviceCall call = call_of(backend, op, in, out, attrs);
    const auto kernel = call.prepare();
    const auto stream = backend.make_stream();
    kernel->enqueue(*stream);
    stream->finish();
    std::vector<std::vector<uint8_t>> made;
    for (size_t i = 0; i < out.size(); ++i) made.push_back(call.bytes(i));
    return made;
  }
  static Numbers by_cpu(Op op, const std::vector<Numbers>& in, const Numbers& out, const Attrs& given) {
    const auto cpu = make_cpu_backend();
    const Attrs attrs = make_attrs(op, given);
    std::vector<Operand> of_in;
    std::vector<Type> types;
    for (const Numbers& x : in) {
      of_in.push_back(x.operand());
      types.push_back({.dtype = x.dtype, .shape = x.shape, .layout = {}});
    }
    const Type of_y = {.dtype = out.dtype, .shape = out.shape, .layout = {}};
    Numbers made(out.dtype, out.shape);
    const std::vector<Operand> of_out = {made.operand()};
    Workers workers(1);
    Call call;
    call.in = of_in;
    call.out = of_out;
    call.attrs = &attrs;
    call.workers = &workers;
    call.workspace_bytes = workspace_need(profile_of(*cpu, 1), op, types, {&of_y, 1}, attrs);
    const auto workspace = cpu->allocate(call.workspace_bytes, MemoryRole::workspace);
    call.workspace = workspace->data();
    const FloatMode mode;
    cpu->kernels()[static_cast<size_t>(op)].run(call);
    return made;
  }

  const std::string file_ = testing::TempDir() + "products.jsonl";
};

ProductKey key_of(const Sizes& sizes, DType dtype, DType result) {
  ProductKey key;
  key.m = sizes.m, key.n = sizes.n, key.k = sizes.k;
  key.transpose_a = sizes.transpose_a, key.transpose_b = sizes.transpose_b;
  key.in = dtype, key.out = result;
  return key;
}

std::vector<Numbers> operands_of(const Sizes& sizes, DType dtype) {
  const auto& [m, n, k, transpose_a, transpose_b] = sizes;
  return {Numbers(dtype, transpose_a ? Shape{k, m} : Shape{m, k}, 1), Numbers(dtype, transpose_b ? Shape{n, k} : Shape{k, n}, 2)};
}

const Sizes kTaken[] = {{40, 24, 256, false, false}, {24, 72, 128, false, true}, {16, 40, 264, true, false}};
constexpr Sizes kRefused = {8, 8, 24, true, true};

TEST_F(LibraryProducts, HaveTheErrorsOfTheCpuIn16Bits) {
  const auto backend = device();
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const Sizes& sizes : kTaken) {
      const auto& [m, n, k, transpose_a, transpose_b] = sizes;
      const std::vector<Numbers> in = operands_of(sizes, dtype);
      const Attrs attrs = {{"transpose_a", transpose_a}, {"transpose_b", transpose_b}};
      Numbers made(dtype, {m, n});
      const int64_t before = counts().products;
      made.bytes = run(*backend, Op::matmul, in, {made}, attrs)[0];
      EXPECT_EQ(counts().products, before + 1);
      const Numbers cpu = by_cpu(Op::matmul, in, made, attrs);
      std::vector<double> wanted;
      double of_cpu = 0;
      for (int64_t i = 0; i < m * n; ++i) {
        double sum = 0;
        for (int64_t e = 0; e < k; ++e)
          sum += in[0].at(transpose_a ? e * m + i / n : i / n * k + e) * in[1].at(transpose_b ? i % n * k + e : e * n + i % n);
        wanted.push_back(sum);
        of_cpu = std::max(of_cpu, std::abs(cpu.at(i) - sum));
      }
      for (int64_t i = 0; i < m * n; ++i) {
        const double sum = wanted[static_cast<size_t>(i)];
        ASSERT_LE(std::abs(made.at(i) - sum), 1.5 * of_cpu + unit_at(sum, dtype)) << text(dtype, ", ", m, "x", n, "x", k, ", element ", i);
      }
    }
}

// In fp32 the bias is added before the result is rounded, as our kernels add it.
TEST_F(LibraryProducts, AddABias) {
  const auto backend = device(), own = device_without_library();
  const std::vector<Numbers> in = {Numbers(DType::bf16, {2, 12, 64}, 1), Numbers(DType::bf16, {64, 40}, 2), Numbers(DType::bf16, {40}, 3)};
  const Numbers y(DType::bf16, {2, 12, 40});
  Numbers made = y, of_own = y;
  const int64_t before = counts().products;
  made.bytes = run(*backend, Op::linear, in, {y}, {})[0];
  EXPECT_EQ(counts().products, before + 1);
  of_own.bytes = run(*own, Op::linear, in, {y}, {})[0];
  EXPECT_EQ(counts().products, before + 1);
  for (int64_t i = 0; i < y.shape.elements(); ++i) ASSERT_LE(std::abs(made.at(i) - of_own.at(i)), unit_at(of_own.at(i), DType::bf16)) << i;
}

TEST_F(LibraryProducts, AreAskedForByARuleOfTheProblemAlone) {
  const auto takes = [](int64_t m, int64_t n, int64_t k, DType in, DType out) {
    return is_for_library(key_of({m, n, k, false, false}, in, out));
  };
  EXPECT_TRUE(takes(3, 8, 16, DType::bf16, DType::bf16));
  EXPECT_TRUE(takes(8, 8, 65536, DType::bf16, DType::bf16));
  EXPECT_FALSE(takes(8, 8, 65544, DType::bf16, DType::bf16));  // cut sums would show
  EXPECT_TRUE(takes(8, 8, 8192, DType::f16, DType::f16));
  EXPECT_FALSE(takes(8, 8, 8200, DType::f16, DType::f16));
  EXPECT_FALSE(takes(8, 8, 16, DType::bf16, DType::f32));
  EXPECT_FALSE(takes(8, 8, 16, DType::f32, DType::f32));
  EXPECT_FALSE(takes(8, 9, 16, DType::bf16, DType::bf16));  // rows of odd length
  EXPECT_FALSE(takes(8, 8, 12, DType::bf16, DType::bf16));
  ProductKey key = key_of({3, 8, 16, true, false}, DType::bf16, DType::bf16);
  EXPECT_FALSE(is_for_library(key));  // rows of 3
  key.m = 8;
  EXPECT_TRUE(is_for_library(key));
  key.bias = true;
  EXPECT_TRUE(is_for_library(key));
  key.adds = true;
  EXPECT_FALSE(is_for_library(key));
}

TEST_F(LibraryProducts, LeaveOthersToOurKernelsWithTheirBits) {
  const auto own = device_without_library();
  const Sizes taken = kTaken[0];
  // One that the library is never asked for, one of a batch, one with a request for tiles.
  const std::vector<Numbers> odd = operands_of({8, 9, 16, false, false}, DType::bf16), right = operands_of(taken, DType::bf16);
  const std::vector<Numbers> batch = {Numbers(DType::bf16, {2, 8, 16}, 1), Numbers(DType::bf16, {2, 16, 8}, 2)};
  const Attrs tiles = {{"tiles", Ints{0, 0, 128, 128, 0, 0, 0, 0, 0}}};
  {
    const auto backend = device();
    const int64_t before = counts().products;
    EXPECT_EQ(run(*backend, Op::matmul, odd, {Numbers(DType::bf16, {8, 9})}, {}),
              run(*own, Op::matmul, odd, {Numbers(DType::bf16, {8, 9})}, {}));
    EXPECT_EQ(run(*backend, Op::matmul, batch, {Numbers(DType::bf16, {2, 8, 8})}, {}),
              run(*own, Op::matmul, batch, {Numbers(DType::bf16, {2, 8, 8})}, {}));
    EXPECT_EQ(run(*backend, Op::matmul, right, {Numbers(DType::bf16, {40, 24})}, tiles),
              run(*own, Op::matmul, right, {Numbers(DType::bf16, {40, 24})}, {}));
    EXPECT_EQ(counts().products, before);
  }
  // Those that the library refuses: two transposed operands, and an algorithm that it does not offer.
  {
    const auto backend = device();
    const FakeCublasLt before = counts();
    const Attrs both = {{"transpose_a", true}, {"transpose_b", true}};
    const std::vector<Numbers> in = operands_of(kRefused, DType::bf16);
    EXPECT_EQ(run(*backend, Op::matmul, in, {Numbers(DType::bf16, {8, 8})}, both),
              run(*own, Op::matmul, in, {Numbers(DType::bf16, {8, 8})}, both));
    EXPECT_EQ(counts().products, before.products);
    EXPECT_EQ(counts().heuristics, before.heuristics + 1);
  }
  ProductTable table("simulated", kVersion);
  table.add(key_of(taken, DType::bf16, DType::bf16), {.is_by_library = true, .algorithm = 9});
  use_table(table);
  const auto backend = device();
  const int64_t before = counts().products, asked = counts().heuristics;
  EXPECT_EQ(run(*backend, Op::matmul, right, {Numbers(DType::bf16, {40, 24})}, {}),
            run(*own, Op::matmul, right, {Numbers(DType::bf16, {40, 24})}, {}));
  EXPECT_EQ(counts().products, before);
  EXPECT_EQ(counts().heuristics, asked + 1);
}

TEST_F(LibraryProducts, AreMadeOnceAndKeptByProblem) {
  device();
  const FakeCublasLt first = counts();
  {
    const auto backend = device();
    const Sizes sizes = kTaken[0];
    const std::vector<Numbers> in = operands_of(sizes, DType::bf16);
    std::vector<DeviceCall> calls;
    for (int i = 0; i < 3; ++i) calls.push_back(call_of(*backend, Op::matmul, in, {Numbers(DType::bf16, {40, 24})}, {}));
    std::vector<std::unique_ptr<Prepared>> kernels;
    for (DeviceCall& call : calls) kernels.push_back(call.prepare());
    const FakeCublasLt prepared = counts();
    EXPECT_EQ(prepared.heuristics, first.heuristics + 1);  // three calls of one problem
    EXPECT_EQ(prepared.alive, first.alive + 1);            // the handle
    const auto stream = backend->make_stream();
    for (int step = 0; step < 4; ++step)
      for (const auto& kernel : kernels) kernel->enqueue(*stream);
    stream->finish();
    EXPECT_EQ(counts().created, prepared.created);
    EXPECT_EQ(counts().heuristics, prepared.heuristics);
    EXPECT_EQ(counts().products, prepared.products + 12);
    EXPECT_EQ(calls[0].bytes(), calls[2].bytes());
  }
  EXPECT_EQ(counts().alive, first.alive);
}

TEST_F(LibraryProducts, AreRecordedAndGivenAgain) {
  const auto backend = device();
  const std::vector<Numbers> in = {Numbers(DType::bf16, {16, 32}, 1), Numbers(DType::bf16, {32, 16}, 2), Numbers(DType::bf16, {16}, 3)};
  DeviceCall call = call_of(*backend, Op::linear, in, {Numbers(DType::bf16, {16, 16})}, {});
  const auto kernel = call.prepare();
  const auto stream = backend->make_stream();
  const int64_t before = counts().products;
  stream->begin_recording();
  kernel->enqueue(*stream);
  const auto recording = stream->end_recording();
  EXPECT_EQ(counts().products, before + 1);
  for (const uint64_t seed : {4, 5}) {
    const Numbers x(DType::bf16, {16, 32}, seed);
    backend->to_device(call.inputs()[0].data, x.bytes.data(), static_cast<int64_t>(x.bytes.size()));
    recording->launch(*stream);
    stream->finish();
    EXPECT_EQ(call.bytes(), run(*backend, Op::linear, {x, in[1], in[2]}, {Numbers(DType::bf16, {16, 16})}, {})[0]) << seed;
  }
}

// Our stages come after the library's sums, so that a fused op has the bits of separate ones.
TEST_F(LibraryProducts, OfFusedOpsHaveTheBitsOfSeparateOnes) {
  const Sizes sizes = {24, 40, 64, false, false};
  for (const DType dtype : {DType::f32, DType::bf16, DType::f16}) {
    ProductTable table("simulated", kVersion);
    ProductKey key = key_of(sizes, dtype, dtype);
    key.bias = true;
    if (dtype == DType::f32) table.add(key, {.is_by_library = true});
    use_table(table);
    const auto backend = device();
    const std::vector<Numbers> in = {Numbers(dtype, {24, 64}, 1), Numbers(dtype, {64, 40}, 2), Numbers(dtype, {40}, 3),
                                     Numbers(dtype, {24, 40}, 4)};
    const Numbers y(dtype, {24, 40});
    const int64_t before = counts().products;
    const auto fused = run(*backend, Op::fused_linear, in, {y, y},
                           {{"bias", true}, {"residual", true}, {"pre_activation", true}, {"activation", std::string("gelu_tanh")}});
    Numbers sums = y, activated = y;
    sums.bytes = run(*backend, Op::linear, {in[0], in[1], in[2]}, {y}, {})[0];
    EXPECT_EQ(counts().products, before + 2);
    activated.bytes = run(*backend, Op::gelu, {sums}, {y}, {{"approximate", std::string("tanh")}})[0];
    EXPECT_EQ(fused[1], sums.bytes) << name_of(dtype);
    EXPECT_EQ(fused[0], run(*backend, Op::add, {activated, in[3]}, {y}, {})[0]) << name_of(dtype);
  }
}

// A gradient through an activation, with the sums of its columns; the weight is transposed.
TEST_F(LibraryProducts, OfGradientsHaveTheBitsOfSeparateOps) {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto backend = device();
    const std::vector<Numbers> in = {Numbers(dtype, {3, 8, 64}, 1), Numbers(dtype, {40, 64}, 2), Numbers(dtype, {3, 8, 40}, 3)};
    const Numbers y(dtype, {3, 8, 40}), columns(dtype, {40});
    const int64_t before = counts().products;
    const auto fused =
        run(*backend, Op::fused_linear, in, {y, columns},
            {{"transpose_weight", true}, {"backward", true}, {"column_sums", true}, {"activation", std::string("gelu_tanh")}});
    Numbers dx = y, wanted = y;
    dx.bytes = run(*backend, Op::matmul, {in[0], in[1]}, {y}, {{"transpose_b", true}})[0];
    EXPECT_EQ(counts().products, before + 2);
    wanted.bytes = run(*backend, Op::gelu_backward, {in[2], dx}, {y}, {{"approximate", std::string("tanh")}})[0];
    EXPECT_EQ(fused[0], wanted.bytes) << name_of(dtype);
    EXPECT_EQ(fused[1], run(*backend, Op::sum, {wanted}, {columns}, {{"axes", Ints{0, 1}}})[0]) << name_of(dtype);
  }
}

// As the tuner asks for them.
TEST_F(LibraryProducts, AreThoseThatANodeAsksFor) {
  const auto backend = device(), own = device_without_library();
  const std::vector<Numbers> in = operands_of(kTaken[0], DType::f32);
  const auto named = [](const char* library) { return Attrs{{"library", std::string(library)}}; };
  const int64_t before = counts().products;
  run(*backend, Op::matmul, in, {Numbers(DType::f32, {40, 24})}, named("cublasLt-1"));
  EXPECT_EQ(counts().products, before + 1);
  const auto message = [&](Backend& device, const char* library) {
    return error_of([&] { run(device, Op::matmul, in, {Numbers(DType::f32, {40, 24})}, named(library)); }).message();
  };
  const std::string absent = "matmul: cuBLASLt is not there, or offers no algorithm 40 for 1 products of 40x24x256; leave out library";
  EXPECT_EQ(message(*backend, "cublasLt-40"), absent);
  EXPECT_EQ(message(*own, "cublasLt-40"), absent);
  for (const char* const other : {"mkl-2026", "cublasLt-", "cublasLt-1x"})
    EXPECT_EQ(message(*backend, other),
              text("matmul: device cuda computes products by its own kernels (own) or by cublasLt-0, cublasLt-1, ..., not by ", other,
                   "; leave out library"));
}

GemmProblem plain_problem(int64_t m, int64_t n, int64_t k, DType dtype) {
  GemmProblem p;
  p.m = m, p.n = n, p.k = k;
  p.a = {k, 1}, p.b = {n, 1}, p.c = {n, 1};
  p.a_type = p.b_type = p.c_type = dtype;
  return p;
}

// Products over the host's arrays, which the program's benchmarks use.
TEST_F(LibraryProducts, OfTheHostsArraysAreMeasuredAndComputed) {
  const auto backend = device(), own = device_without_library();
  const std::vector<Numbers> in = operands_of(kTaken[0], DType::bf16);
  Numbers made(DType::bf16, {40, 24});
  const GemmProblem problem = plain_problem(40, 24, 256, DType::bf16);
  const GemmOperands operands = {.a = in[0].bytes.data(), .b = in[1].bytes.data(), .c = made.bytes.data()};
  const auto by_library = run(*backend, Op::matmul, in, {made}, {})[0], by_us = run(*own, Op::matmul, in, {made}, {})[0];
  DeviceGemm chosen(*backend, problem, {.tiles = {}, .lets_libraries = true, .seconds = 0});
  EXPECT_EQ(std::string(chosen.library()), "chosen");
  EXPECT_EQ(chosen.rate(), 0);
  chosen.run(operands, 1, 0);
  EXPECT_EQ(made.bytes, by_library);
  DeviceGemm ours(*backend, problem, {.tiles = {}, .lets_libraries = false, .seconds = 0.01});
  EXPECT_EQ(std::string(ours.library()), "own");
  EXPECT_GT(ours.rate(), 0);
  EXPECT_GE(ours.tiles().mc, 64);
  ours.run(operands, 1, 0);
  EXPECT_EQ(made.bytes, by_us);
  const int64_t before = counts().heuristics;
  DeviceGemm any(*backend, problem, {.tiles = {}, .lets_libraries = true, .seconds = 0.01});
  EXPECT_GT(counts().heuristics, before + 1);  // each algorithm
  any.run(operands, 1, 0);
  EXPECT_EQ(made.bytes, std::string(any.library()) == "own" ? by_us : by_library) << any.library();
}

TEST_F(LibraryProducts, OfTheHostsArraysRefuseWhatADeviceCannotDo) {
  const auto backend = device();
  const auto message = [&](const GemmProblem& problem, const DeviceGemm::Wish& wish) {
    return error_of([&] { DeviceGemm(*backend, problem, wish); }).message();
  };
  GemmProblem p = plain_problem(8, 8, 16, DType::bf16);
  TileSchedule large;
  large.mc = large.nc = 256;
  EXPECT_EQ(message(p, {.tiles = large}),
            "matmul: a tile of 256x256x32 takes 98304 bytes of shared memory, and 512 registers a thread for its sums; device cuda has "
            "128x128x32, 128x64x32, 64x64x32");
  DeviceGemm right(*backend, p, {});
  EXPECT_EQ(error_of([&] { right.run({}, 2, 0); }).code(), Code::unsupported);
  p.a = {17, 1};
  EXPECT_EQ(message(p, {}), "gemm: a device takes matrices without gaps, got strides of 17 and 1 in A of 8x16");
  p = plain_problem(8, 8, 16, DType::bf16);
  p.batch = 2;
  p.a_batch = p.b_batch = 128, p.c_batch = 64;
  EXPECT_EQ(message(p, {}), "gemm: a device multiplies one pair of matrices of one type, with a result of it or of f32");
}

TEST_F(LibraryProducts, OfMuonAreATablesChoice) {
  const std::vector<std::pair<Sizes, bool>> products = {
      {{16, 16, 24, false, true}, false}, {{16, 16, 16, false, false}, true}, {{16, 24, 16, false, false}, true}};
  const auto stepped = [](Backend& backend) {
    DeviceCall call(backend, Op::muon);
    const Numbers gradient(DType::f32, {16, 24}, 1);
    call.input<uint8_t>(DType::f32, {16, 24}, gradient.bytes).input<float>(DType::f32, {}, {1}).input<uint8_t>(DType::boolean, {}, {0});
    call.input<double>(DType::f64, {2}, {0.5, 1}).slot(DType::f32, {16, 24}).slot(DType::f32, {16, 24});
    const auto kernel = call.prepare();
    const auto stream = backend.make_stream();
    kernel->enqueue(*stream);
    stream->finish();
    return call.first_slot();
  };
  const std::vector<float> own = stepped(*device_without_library());
  ProductTable table("simulated", kVersion);
  for (const auto& [sizes, adds] : products) {
    ProductKey key = key_of(sizes, DType::f32, DType::f32);
    key.adds = adds;
    table.add(key, {.is_by_library = true});
  }
  use_table(table);
  const auto backend = device();
  const FakeCublasLt before = counts();
  const std::vector<float> made = stepped(*backend);
  EXPECT_EQ(counts().products, before.products + 15);  // three of each of five iterations
  EXPECT_EQ(counts().heuristics, before.heuristics + 3);
  for (size_t i = 0; i < own.size(); ++i) ASSERT_NEAR(made[i], own[i], 1e-5) << i;
}

TEST_F(LibraryProducts, AreChosenByATableWhoseChoicesAreInTheKernelClass) {
  EXPECT_EQ(device_without_library()->kernel_class(), "simulated");
  EXPECT_EQ(device()->kernel_class(), "simulated cublasLt=130100,1048576 table=none");
  const Sizes sizes = kTaken[0];
  const std::vector<Numbers> in = operands_of(sizes, DType::bf16);
  const Numbers y(DType::bf16, {40, 24});
  const auto own = device_without_library();
  ProductTable table("simulated", kVersion);
  MeasuredProduct measured = {.is_by_library = false, .algorithm = 0, .tile = cuda::product_tiles(DType::bf16).front(), .us = 2};
  table.add(key_of(sizes, DType::bf16, DType::bf16), measured);
  use_table(table);
  const auto by_table = device();
  const int64_t before = counts().products;
  EXPECT_EQ(run(*by_table, Op::matmul, in, {y}, {}), run(*own, Op::matmul, in, {y}, {}));
  EXPECT_EQ(counts().products, before);
  EXPECT_EQ(by_table->kernel_class(), text("simulated cublasLt=130100,1048576 table=", table.hash()));
  // Times are no choices.
  ProductTable other = table;
  measured.us = 3;
  other.add(key_of(sizes, DType::bf16, DType::bf16), measured);
  EXPECT_EQ(other.hash(), table.hash());
  measured.tile = cuda::product_tiles(DType::bf16).back();
  other.add(key_of(sizes, DType::bf16, DType::bf16), measured);
  EXPECT_NE(other.hash(), table.hash());
}

TEST_F(LibraryProducts, OfATableAreReadAsTheyWereWritten) {
  ProductTable table("simulated", kVersion);
  ProductKey key = key_of(kTaken[2], DType::bf16, DType::f32);
  key.bias = true;
  table.add(key, {.is_by_library = true, .algorithm = 3, .tile = {}, .us = 1.5, .other_us = 2.25});
  key.adds = true;
  table.add(key, {.is_by_library = false, .algorithm = 0, .tile = cuda::product_tiles(DType::bf16)[1], .us = 4});
  use_table(table);
  const ProductTable read = ProductTable::read(file_);
  EXPECT_EQ(read.text(), table.text());
  EXPECT_EQ(read.hash(), table.hash());
  EXPECT_EQ(read.find(key)->tile, cuda::product_tiles(DType::bf16)[1]);
}

TEST_F(LibraryProducts, OfAWrongTableAreRefusedWithItsLine) {
  const auto message = [&](const std::string& content) {
    std::ofstream(file_) << content;
    setenv(kTable, file_.c_str(), 1);
    return error_of([&] { device(); }).message();
  };
  const std::string header = "{\"products\":1,\"device\":\"simulated\",\"cublasLt\":130100}\n",
                    row = R"({"m":8,"n":8,"k":16,"a":"n","b":"n","in":"bf16","out":"bf16","bias":false,"adds":false,)";
  const std::string again = "; measure again with scaletrain bench gemm --tune --device cuda";
  EXPECT_EQ(message(""), file_ + ": a table of products begins with a header, and this file is empty" + again);
  EXPECT_EQ(
      message("{\"products\":1,\"device\":\"sm_90a/132\",\"cublasLt\":0}\n"),
      file_ + " was measured on sm_90a/132 with no cuBLASLt, and this is simulated with cuBLASLt 13.1.0" + again + ", or unset " + kTable);
  EXPECT_EQ(message(header + row + "\"by\":\"own\",\"tile\":\"256x256\",\"us\":1,\"other_us\":0}\n"),
            file_ + ": line 2: our kernels of bf16 have no tile 256x256" + again);
  const std::string right = row + "\"by\":\"own\",\"tile\":\"64x64\",\"us\":1,\"other_us\":0}\n";
  EXPECT_EQ(message(header + right + right), file_ + ": line 3: this problem is there already" + again);
  EXPECT_EQ(message(header + row + "\"by\":\"cublasLt\",\"algorithm\":64,\"us\":1,\"other_us\":0}\n"),
            file_ + ": line 2: algorithm must be a whole number in [0, 63], got 64");
  std::filesystem::remove(file_);
  EXPECT_EQ(error_of([&] { device(); }).code(), Code::not_found);
}

}  // namespace
}  // namespace st
