// The shape of attention's operands, and the scratch of one task.
#pragma once

#include <algorithm>
#include <cmath>

#include "base/shape.h"
#include "gemm/schedule.h"
#include "ir/attrs.h"

namespace st::cpu {

/// Queries and keys of a block of scores: a multiple of the tile's rows and of a vector, so that scores fit either side of a product
/// without partial tiles.
constexpr int64_t attention_block(const KernelTile& tile) { return tile.rows == 14 ? 112 : tile.columns == 16 ? 96 : 48; }

/// q, o [B, T, H, D]; k, v [B, S, G, D]; head h reads group h / (H / G). Causal: query t sees keys 0 .. t + S - T.
struct Heads {
  int64_t batch, queries, heads, width, keys, groups;
  bool causal;
  float scale;

  Heads(const Shape& q, const Shape& k, const Attrs& attrs)
      : batch(q[0]), queries(q[1]), heads(q[2]), width(q[3]), keys(k[1]), groups(k[2]), causal(attrs.flag("causal")) {
    const double given = attrs.real("scale");
    scale = static_cast<float>(given == 0 ? 1 / std::sqrt(static_cast<double>(width)) : given);
  }

  int64_t heads_per_group() const { return heads / groups; }
  int64_t query(int64_t b, int64_t t, int64_t h) const { return ((b * queries + t) * heads + h) * width; }
  int64_t key(int64_t b, int64_t s, int64_t g) const { return ((b * keys + s) * groups + g) * width; }
  /// Keys that some query before t_end sees.
  int64_t keys_seen(int64_t t_end) const { return causal ? std::clamp<int64_t>(t_end + keys - queries, 0, keys) : keys; }
  /// Whether L2 has room for the packed keys and values of this and another head.
  bool fits_twice() const { return keys * width <= 32768; }
  /// The first query that sees key s.
  int64_t first_query(int64_t s) const { return causal ? s - (keys - queries) : 0; }
};

/// Hands out consecutive parts of one task's scratch, each a multiple of 64 bytes. Without memory it only counts.
class Scratch {
 public:
  explicit Scratch(float* data) : data_(data) {}
  float* take(int64_t floats) {
    float* piece = data_ == nullptr ? nullptr : data_ + used_;
    used_ += round_up(floats, 16);
    return piece;
  }
  int64_t used() const { return used_; }

 private:
  float* data_;
  int64_t used_ = 0;
};

struct ForwardScratch {
  float *keys, *values, *queries, *block, *sums, *peak, *total, *rescale;
  int64_t floats;

  ForwardScratch(const Heads& shape, const KernelTile& tile, float* data) {
    Scratch scratch(data);
    const int64_t block_size = attention_block(tile), padded = round_up(shape.width, tile.width());
    keys = scratch.take(shape.keys * shape.width);
    values = scratch.take(shape.keys * padded);
    queries = scratch.take(block_size * shape.width);
    block = scratch.take(block_size * block_size);
    sums = scratch.take(block_size * padded);
    peak = scratch.take(block_size);
    total = scratch.take(block_size);
    rescale = scratch.take(block_size);
    floats = scratch.used();
  }
};

struct BackwardScratch {
  float *key_rows, *value_rows, *key_columns;                    // packed once per group
  float *q_transposed, *do_transposed, *q_columns, *do_columns;  // for a block of queries
  float *p, *ds;                                                 // blocks, [keys][queries]
  float *dq, *dk, *dv;                                           // sums: dq for a block of queries, dk and dv for the whole group
  float *lse, *delta;
  int64_t floats;

  BackwardScratch(const Heads& shape, const KernelTile& tile, float* data) {
    Scratch scratch(data);
    const int64_t block_size = attention_block(tile), padded = round_up(shape.width, tile.width());
    key_rows = scratch.take(shape.keys * shape.width);
    value_rows = scratch.take(shape.keys * shape.width);
    key_columns = scratch.take(shape.keys * padded);
    q_transposed = scratch.take(block_size * shape.width);
    do_transposed = scratch.take(block_size * shape.width);
    q_columns = scratch.take(block_size * padded);
    do_columns = scratch.take(block_size * padded);
    p = scratch.take(block_size * block_size);
    ds = scratch.take(block_size * block_size);
    dq = scratch.take(block_size * padded);
    dk = scratch.take(shape.keys * padded);
    dv = scratch.take(shape.keys * padded);
    lse = scratch.take(block_size);
    delta = scratch.take(block_size);
    floats = scratch.used();
  }
};

}  // namespace st::cpu
