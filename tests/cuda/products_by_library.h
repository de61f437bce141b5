// Shared by tests of products on the simulated device with the library in cuBLASLt's place (fake_cublaslt.cpp): numbers, and calls of ops
// on a device, with and without the library and a table of choices.
#pragma once

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
#include "product_errors.h"
#include "thrown_error.h"

namespace st {

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
  static FakeCublasLt counts() {
    const auto& now = *os::LoadedLibrary::if_open("libcublasLt.so.13")->need<AskFakeCublasLt>("st_fake_cublaslt")();
    return {now.created, now.alive, now.heuristics, now.products};
  }

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

inline ProductKey key_of(const Sizes& sizes, DType dtype, DType result) {
  ProductKey key;
  key.m = sizes.m, key.n = sizes.n, key.k = sizes.k;
  key.transpose_a = sizes.transpose_a, key.transpose_b = sizes.transpose_b;
  key.in = dtype, key.out = result;
  return key;
}

inline std::vector<Numbers> operands_of(const Sizes& sizes, DType dtype) {
  const auto& [m, n, k, transpose_a, transpose_b] = sizes;
  return {Numbers(dtype, transpose_a ? Shape{k, m} : Shape{m, k}, 1), Numbers(dtype, transpose_b ? Shape{n, k} : Shape{k, n}, 2)};
}

inline const Sizes kTaken[] = {{40, 24, 256, false, false}, {24, 72, 128, false, true}, {16, 40, 264, true, false}};
constexpr Sizes kRefused = {8, 8, 24, true, true};

}  // namespace st
