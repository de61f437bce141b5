#include "backend/product_wish.h"

#include "gemm/gemm_library.h"
#include "gemm/tile_sizes.h"

namespace st {

TileSchedule product_wish(const Attrs& attrs) {
  TileSchedule wish = wish_of_sizes(attrs.ints("tiles"));
  if (attrs.has("library") && !attrs.word("library").empty()) wish.library = &gemm_library_of(attrs.word("library"));
  return wish;
}

}  // namespace st
