// Products by cuBLASLt on the simulated device, through a library in its place (fake_cublaslt.cpp): what is given to it, and what is not.
#include <gtest/gtest.h>

#include <cmath>

#include "products_by_library.h"

namespace st {
namespace {

TEST_F(LibraryProducts, HaveTheErrorsOfTheCpuIn16Bits) {
  const auto backend = device();
  for (const DType dtype : {DType::bf16, DType::f16})
    for (const Sizes& sizes : kTaken) {
      const std::vector<Numbers> in = operands_of(sizes, dtype);
      const Attrs attrs = {{"transpose_a", sizes.transpose_a}, {"transpose_b", sizes.transpose_b}};
      Numbers made(dtype, {sizes.m, sizes.n});
      const int64_t before = counts().products;
      made.bytes = run(*backend, Op::matmul, in, {made}, attrs)[0];
      EXPECT_EQ(counts().products, before + 1);
      expect_errors_of_the_cpu(sizes, in[0], in[1], made, by_cpu(Op::matmul, in, made, attrs));
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
  EXPECT_TRUE(takes(8, 8, 32768, DType::bf16, DType::bf16));
  EXPECT_FALSE(takes(8, 8, 32776, DType::bf16, DType::bf16));  // cut sums would show
  EXPECT_TRUE(takes(8, 8, 4096, DType::f16, DType::f16));
  EXPECT_FALSE(takes(8, 8, 4104, DType::f16, DType::f16));
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

}  // namespace
}  // namespace st
