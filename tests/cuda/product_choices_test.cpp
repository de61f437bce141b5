// Which products of a device are the library's, and by which of its algorithms: measured tables, and plans of products over the host's
// arrays.
#include <gtest/gtest.h>

#include "parts/device_gemm.h"
#include "products_by_library.h"

namespace st {
namespace {

GemmProblem plain_problem(int64_t m, int64_t n, int64_t k, DType dtype) {
  GemmProblem p;
  p.m = m, p.n = n, p.k = k;
  p.a = {k, 1}, p.b = {n, 1}, p.c = {n, 1};
  p.a_type = p.b_type = p.c_type = dtype;
  return p;
}

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
  const GemmEpilogue nothing{};  // that the languages always give
  GemmOperands with_nothing = operands;
  with_nothing.epilogue = &nothing;
  ours.run(with_nothing, 1, 0);
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
            "128x128x32, 128x64x32, 64x64x32; ask for one of these, or leave tiles out");
  DeviceGemm right(*backend, p, {});
  EXPECT_EQ(error_of([&] { right.run({}, 2, 0); }).code(), Code::unsupported);
  GemmEpilogue gelu;
  gelu.activation = GemmActivation::gelu_tanh;
  GemmOperands with_gelu;
  with_gelu.epilogue = &gelu;
  EXPECT_EQ(error_of([&] { right.run(with_gelu, 1, 0); }).code(), Code::unsupported);
  p.a = {17, 1};
  EXPECT_EQ(message(p, {}), "gemm: a device takes matrices without gaps, got strides of 17 and 1 in A of 8x16");
  p = plain_problem(8, 8, 16, DType::bf16);
  p.batch = 2;
  p.a_batch = p.b_batch = 128, p.c_batch = 64;
  EXPECT_EQ(message(p, {}), "gemm: a device multiplies one pair of matrices of one type, with a result of it or of f32");
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
  const std::string place = std::string(kTable) + ": " + file_ + ": ", unset = "; or unset it";
  EXPECT_EQ(message(""), place + "a table of products begins with a header, and this file is empty" + again + unset);
  EXPECT_EQ(
      message("{\"products\":1,\"device\":\"sm_90a/132\",\"cublasLt\":0}\n"),
      file_ + " was measured on sm_90a/132 with no cuBLASLt, and this is simulated with cuBLASLt 13.1.0" + again + ", or unset " + kTable);
  EXPECT_EQ(message(header + row + "\"by\":\"own\",\"tile\":\"256x256\",\"us\":1,\"other_us\":0}\n"),
            place + "line 2: our kernels of bf16 have no tile 256x256" + again + unset);
  const std::string right = row + "\"by\":\"own\",\"tile\":\"64x64\",\"us\":1,\"other_us\":0}\n";
  EXPECT_EQ(message(header + right + right), place + "line 3: this problem is there already" + again + unset);
  EXPECT_EQ(message(header + row + "\"by\":\"cublasLt\",\"algorithm\":64,\"us\":1,\"other_us\":0}\n"),
            place + "line 2: algorithm must be a whole number in [0, 63], got 64" + unset);
  std::filesystem::remove(file_);
  const Error missing = error_of([&] { device(); });
  EXPECT_EQ(missing.code(), Code::not_found);
  EXPECT_TRUE(missing.message().starts_with(std::string(kTable) + ": ")) << missing.message();
}

}  // namespace
}  // namespace st
