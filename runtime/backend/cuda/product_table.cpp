#include "backend/cuda/product_table.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "backend/cuda/cublaslt.h"
#include "base/digest.h"
#include "base/error.h"
#include "base/json_fields.h"
#include "base/json_line.h"
#include "base/os/files.h"
#include "base/text.h"

namespace st::cuda {
namespace {

constexpr const char* kTableVariable = "SCALETRAIN_CUDA_PRODUCTS";
constexpr std::string_view kWriter = "measure again with scaletrain bench gemm --tune --device cuda";
constexpr int64_t kTableVersion = 1, kMostBytes = int64_t{16} << 20, kLargest = (int64_t{1} << 31) - 1;
constexpr std::string_view kTransposed[] = {"n", "t"}, kTypes[] = {"f32", "bf16", "f16"}, kKinds[] = {"own", "cublasLt"};

/// The smallest that has the rows and columns of "128x64", as product_tile() takes it.
ProductTile tile_named(const std::string& name, DType dtype, const std::string& place) {
  int64_t size[2] = {};
  const char* const end = name.data() + name.size();
  const auto [middle, wrong] = std::from_chars(name.data(), end, size[0]);
  const bool is_size = wrong == std::errc{} && middle != end && *middle == 'x' && std::from_chars(middle + 1, end, size[1]).ptr == end &&
                       size[0] > 0 && size[1] > 0;
  const std::span<const ProductTile> tiles = product_tiles(dtype);
  const auto found =
      std::find_if(tiles.rbegin(), tiles.rend(), [&](const ProductTile& tile) { return tile.rows >= size[0] && tile.columns >= size[1]; });
  check(is_size && found != tiles.rend(), place, ": our kernels of ", dtype, " have no tile ", name, "; ", kWriter);
  return *found;
}

ProductKey key_of(JsonFields& fields) {
  ProductKey key;
  key.m = fields.whole("m", 1, kLargest);
  key.n = fields.whole("n", 1, kLargest);
  key.k = fields.whole("k", 1, kLargest);
  key.transpose_a = fields.one_of("a", kTransposed) == "t";
  key.transpose_b = fields.one_of("b", kTransposed) == "t";
  key.in = dtype_named(fields.one_of("in", kTypes));
  key.out = dtype_named(fields.one_of("out", kTypes));
  key.bias = fields.flag("bias");
  key.adds = fields.flag("adds");
  return key;
}

MeasuredProduct measured_of(JsonFields& fields, DType dtype, const std::string& place) {
  MeasuredProduct measured;
  measured.is_by_library = fields.one_of("by", kKinds) == "cublasLt";
  if (measured.is_by_library)
    measured.algorithm = static_cast<int>(fields.whole("algorithm", 0, kMostAlgorithms - 1));
  else
    measured.tile = tile_named(fields.text("tile"), dtype, place);
  measured.us = fields.rate("us");
  measured.other_us = fields.rate("other_us");
  return measured;
}

}  // namespace

ProductTable ProductTable::read(const std::string& file) {
  const std::string all = os::read_file(file, kMostBytes);
  ProductTable table("", 0);
  bool has_header = false;
  int64_t number = 0;
  for (size_t begin = 0; begin < all.size();) {
    const size_t end = std::min(all.find('\n', begin), all.size());
    const std::string place = st::text(file, ": line ", ++number);
    const Json line = parse_json(std::string_view(all).substr(begin, end - begin), place);
    JsonFields fields(line, place, kWriter);
    if (!has_header) {
      fields.whole("products", kTableVersion, kTableVersion);
      table.device_ = fields.text("device");
      table.library_ = static_cast<size_t>(fields.whole("cublasLt", 0, kLargest));
      has_header = true;
    } else {
      const ProductKey key = key_of(fields);
      check(table.find(key) == nullptr, place, ": this problem is there already; ", kWriter);
      table.add(key, measured_of(fields, key.in, place));
    }
    fields.done(kTableVersion);
    begin = end + 1;
  }
  check(has_header, file, ": a table of products begins with a header, and this file is empty; ", kWriter);
  table.file_ = file;
  return table;
}

void ProductTable::check_made_for(std::string_view device, size_t library) const {
  const auto name = [](size_t version) { return version == 0 ? std::string("no cuBLASLt") : "cuBLASLt " + cublaslt_version_text(version); };
  require(device_ == device && library_ == library, Code::unavailable, file_, " was measured on ", device_, " with ", name(library_),
          ", and this is ", device, " with ", name(library), "; ", kWriter, ", or unset ", kTableVariable);
}

const MeasuredProduct* ProductTable::find(const ProductKey& key) const {
  const auto found = rows_.find(key);
  return found == rows_.end() ? nullptr : &found->second;
}

std::string ProductTable::text_of(bool with_times) const {
  JsonLine line;
  std::string all = line.add("products", kTableVersion).add("device", device_).add("cublasLt", library_).finish();
  for (const auto& [key, measured] : rows_) {
    line.start();
    line.add("m", key.m).add("n", key.n).add("k", key.k).add("a", kTransposed[key.transpose_a ? 1 : 0]);
    line.add("b", kTransposed[key.transpose_b ? 1 : 0]).add("in", name_of(key.in)).add("out", name_of(key.out));
    line.add("bias", key.bias).add("adds", key.adds).add("by", kKinds[measured.is_by_library ? 1 : 0]);
    if (measured.is_by_library)
      line.add("algorithm", measured.algorithm);
    else
      line.add("tile", st::text(measured.tile.rows, "x", measured.tile.columns));
    if (with_times) line.add("us", measured.us).add("other_us", measured.other_us);
    all += line.finish();
  }
  return all;
}

std::string ProductTable::hash() const {
  constexpr size_t kDigits = 16;
  Digest digest;
  digest.update(text_of(false));
  return digest.hex().substr(0, kDigits);
}

std::unique_ptr<const ProductTable> product_table_of_environment(std::string_view device, size_t library) {
  const char* const file = std::getenv(kTableVariable);
  if (file == nullptr || *file == '\0') return nullptr;
  std::unique_ptr<const ProductTable> table;
  try {
    table = std::make_unique<const ProductTable>(ProductTable::read(file));
  } catch (const Error& error) {
    fail(error.code(), text(kTableVariable, ": ", error.message(), "; or unset it"));
  }
  table->check_made_for(device, library);
  return table;
}

}  // namespace st::cuda
