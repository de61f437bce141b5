// Measured choices of products, in a file of JSON lines: a header, then a line for each problem.
//
//   {"products":1,"device":"sm_90a/132","cublasLt":130100}
//   {"m":16384,"n":768,"k":3072,"a":"n","b":"n","in":"bf16","out":"bf16","bias":true,"adds":false,
//    "by":"cublasLt","algorithm":2,"us":101.2,"other_us":130.5}
//   {..,"by":"own","tile":"128x128","us":9.2,"other_us":12.0}
//
// `a` and `b` are "t" for a transposed operand, `algorithm` counts those that the library offers, the best guess first.
// Rows with a bias have the times of the product without one.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "backend/cuda/product_choice.h"

namespace st::cuda {

struct MeasuredProduct {
  bool is_by_library = false;
  int algorithm = 0;            // of a library
  ProductTile tile = {};        // of our kernels
  double us = 0, other_us = 0;  // microseconds: of it, and of the best of the other kind; 0: there was none
};

class ProductTable {
 public:
  /// `device`: its compute class and units, "sm_90a/132". `library`: version of cuBLASLt; 0: none.
  ProductTable(std::string device, size_t library) : device_(std::move(device)), library_(library) {}
  /// Throws io, or invalid_argument with file and line: another header, a tile that our kernels do not have, a problem that is there twice.
  static ProductTable read(const std::string& file);

  /// Throws unavailable unless the table was measured on this device with this library, which decide what its rows mean.
  void check_made_for(std::string_view device, size_t library) const;

  /// Null: not measured.
  const MeasuredProduct* find(const ProductKey& key) const;
  void add(const ProductKey& key, const MeasuredProduct& measured) { rows_[key] = measured; }

  /// The file's text, whose times alone differ between two measurements with the same choices.
  std::string text() const { return text_of(true); }
  /// 16 digits of all choices, without times.
  std::string hash() const;

 private:
  std::string text_of(bool with_times) const;

  std::string file_ = "the table of products", device_;
  size_t library_;
  std::map<ProductKey, MeasuredProduct> rows_;
};

/// The table at $SCALETRAIN_CUDA_PRODUCTS; null: the variable is not set or empty. Throws as read() and check_made_for() do.
std::unique_ptr<const ProductTable> product_table_of_environment(std::string_view device, size_t library);

}  // namespace st::cuda
