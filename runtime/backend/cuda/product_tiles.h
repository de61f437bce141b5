// Which tile of C a block of threads computes: a function of the problem and of the op's attribute `tiles`, and of the device only as far
// as its blocks have too little shared memory for a tile. No bit depends on it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string_view>

#include "base/dtype.h"
#include "ir/attrs.h"

namespace st::cuda {

/// Elements; a stage holds rows + columns lines of `depth` elements in shared memory.
struct ProductTile {
  int64_t rows, columns, depth, stages, threads;
  bool operator==(const ProductTile&) const = default;
};

/// Those that are compiled for operands of a type, the largest first.
std::span<const ProductTile> product_tiles(DType dtype);

/// Bytes of shared memory that a block takes, without a few KiB of padding: the stages, and with slices of sums (sum_slices.h) a second sum
/// for each element of the tile.
int64_t shared_bytes(const ProductTile& tile, DType operands, bool has_slices);

/// Throws unsupported for types without a kernel.
void check_product_types(std::string_view op, DType operands, DType result);

/// The algorithm of cuBLASLt that the attribute `library` asks for by the name cublasLt-N, the best guess being 0; kOwnKernels for "own";
/// nothing without one. Throws unsupported for other libraries.
constexpr int kOwnKernels = -1;
constexpr std::string_view kCublasLtPrefix = "cublasLt-";
std::optional<int> algorithm_asked(std::string_view op, const Attrs& attrs);

/// So many of them are asked for a problem.
constexpr int kMostAlgorithms = 64;
/// Their names; never freed.
std::span<const char* const> algorithm_names();

/// A product, as far as its tile depends on it.
struct TiledProduct {
  DType dtype;  // of the operands
  int64_t m, n, matrices;
  bool has_slices = false;
  int64_t block_shared = std::numeric_limits<int64_t>::max();  // bytes of shared memory that a block of the device can have
};

/// The smallest tile with the rows (mc), columns (nc) and depth (kc) that `tiles` asks for, where 0 leaves the choice: the largest of which
/// the product has enough. Tiles that take more shared memory than a block can have are not there. Throws unsupported with the shared
/// memory and the registers that it would take if it asks for a larger one.
ProductTile product_tile(std::string_view op, const TiledProduct& product, const Attrs& attrs);

}  // namespace st::cuda
