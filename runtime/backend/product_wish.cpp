#include "backend/product_wish.h"

#include <string_view>

#include "gemm/gemm_library.h"
#include "gemm/tile_sizes.h"

namespace st {

TileSchedule product_wish(const Attrs& attrs) {
  TileSchedule wish = wish_of_sizes(attrs.ints("tiles"));
  const std::string_view library = attrs.has("library") ? std::string_view(attrs.word("library")) : "";
  if (!library.empty() && library != "own") wish.library = &gemm_library_of(library);
  return wish;
}

}  // namespace st
