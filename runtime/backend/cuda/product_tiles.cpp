#include "backend/cuda/product_tiles.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/heap.h"
#include "gemm/rounding.h"
#include "gemm/tile_sizes.h"

namespace st::cuda {
namespace {

constexpr ProductTile kOfFloats[] = {{128, 64, 16, 2, 256}, {64, 64, 16, 2, 128}};
constexpr ProductTile kOfDoubles[] = {{64, 64, 16, 2, 128}};
constexpr ProductTile kOfHalves[] = {{128, 128, 32, 3, 256}, {128, 64, 32, 4, 128}, {64, 64, 32, 4, 128}};

/// So many blocks keep every device of today busy.
constexpr int64_t kEnoughBlocks = 128;

/// Registers that a sum takes, of 4 bytes each: there are two sums there, one of a block of K and one of a slice.
int64_t registers_of_sum(DType dtype) { return dtype == DType::f64 ? 4 : 2; }

std::string text_of(const ProductTile& tile) { return text(tile.rows, "x", tile.columns, "x", tile.depth); }

std::string text_of(std::span<const ProductTile> tiles) {
  std::string all;
  for (const ProductTile& tile : tiles) all += (all.empty() ? "" : ", ") + text_of(tile);
  return all;
}

}  // namespace

std::span<const ProductTile> product_tiles(DType dtype) {
  if (dtype == DType::f32) return kOfFloats;
  if (dtype == DType::f64) return kOfDoubles;
  return kOfHalves;
}

std::optional<int> algorithm_asked(std::string_view op, const Attrs& attrs) {
  const std::string_view library = attrs.has("library") ? std::string_view(attrs.word("library")) : "";
  if (library.empty()) return std::nullopt;
  if (library == "own") return kOwnKernels;
  int algorithm = -1;
  if (library.starts_with(kCublasLtPrefix)) {
    const std::string_view digits = library.substr(kCublasLtPrefix.size());
    if (std::from_chars(digits.data(), digits.data() + digits.size(), algorithm).ptr != digits.data() + digits.size()) algorithm = -1;
  }
  require(algorithm >= 0, Code::unsupported, op,
          ": device cuda computes products by its own kernels (own) or by cublasLt-0, cublasLt-1, ..., not by ", library,
          "; leave out library");
  return algorithm;
}

std::span<const char* const> algorithm_names() {
  struct Names {
    std::array<std::string, kMostAlgorithms> texts;
    std::array<const char*, kMostAlgorithms> all;
  };
  static const auto kNames = once_for_the_process([] {
    auto made = std::make_unique<Names>();
    for (size_t i = 0; i < made->all.size(); ++i) made->all[i] = (made->texts[i] = text(kCublasLtPrefix, i)).c_str();
    return made;
  });
  return kNames->all;
}

void check_product_types(std::string_view op, DType operands, DType result) {
  const bool is_half = operands == DType::bf16 || operands == DType::f16;
  require(is_half || operands == DType::f32 || operands == DType::f64, Code::unsupported, op,
          ": device cuda multiplies f32, bf16, f16 and f64, got ", operands, "; cast first");
  require(result == operands || (is_half && result == DType::f32), Code::unsupported, op, ": device cuda has no product of ", operands,
          " with a result of ", result);
}

int64_t shared_bytes(const ProductTile& tile, DType operands, bool has_slices) {
  const int64_t stages = (tile.rows + tile.columns) * tile.depth * tile.stages * bytes_of(operands);
  return stages + (has_slices ? tile.rows * tile.columns * std::max(bytes_of(operands), bytes_of(DType::f32)) : 0);
}

ProductTile product_tile(std::string_view op, const TiledProduct& product, const Attrs& attrs) {
  const std::span<const ProductTile> all = product_tiles(product.dtype);
  const auto is_there = [&](const ProductTile& tile) {
    return shared_bytes(tile, product.dtype, product.has_slices) <= product.block_shared;
  };
  const std::span<const ProductTile> tiles(std::find_if(all.begin(), all.end() - 1, is_there), all.end());
  const TileSchedule wish = wish_of_sizes(attrs.ints("tiles"));
  const auto fits = [&](const ProductTile& tile) { return tile.rows >= wish.mc && tile.columns >= wish.nc && tile.depth >= wish.kc; };
  if (wish.mc == 0 && wish.nc == 0 && wish.kc == 0) {
    const auto is_enough = [&](const ProductTile& tile) {
      return ceil_div(product.m, tile.rows) * ceil_div(product.n, tile.columns) * product.matrices >= kEnoughBlocks;
    };
    return *std::find_if(tiles.begin(), tiles.end() - 1, is_enough);
  }
  const auto found = std::find_if(tiles.rbegin(), tiles.rend(), fits);
  if (found != tiles.rend()) return *found;
  const ProductTile& most = all.front();
  const ProductTile asked = {std::max(wish.mc, tiles.back().rows), std::max(wish.nc, tiles.back().columns), std::max(wish.kc, most.depth),
                             most.stages, most.threads};
  fail(Code::unsupported,
       text(op, ": a tile of ", text_of(asked), " takes ", shared_bytes(asked, product.dtype, product.has_slices),
            " bytes of shared memory, and ", asked.rows * asked.columns / asked.threads * registers_of_sum(product.dtype),
            " registers a thread for its sums; device cuda has ", text_of(tiles), "; ask for one of these, or leave tiles out"));
}

}  // namespace st::cuda
