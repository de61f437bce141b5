// Attention's operands as its kernels read them, and the places of a block of queries or keys.
#pragma once

#include <cstdint>

#include <device/threads.h>

#include "base/dtype.h"

namespace st::cuda {

/// x clamped to [0, most].
DEVICE int within(int64_t x, int most) { return x < 0 ? 0 : x > most ? most : static_cast<int>(x); }
constexpr int64_t tiles_of(int64_t rows, int per_tile) { return (rows + per_tile - 1) / per_tile; }

/// q, o [B, T, H, D]; k, v [B, S, G, D]; head h reads group h / (H / G). Causal: query t sees keys 0 .. t + S - T.
struct AttentionShape {
  int64_t batch, queries, heads, width, keys, groups;
  bool causal;
  DType dtype;
  double scale;

  DEVICE int64_t query(int64_t b, int64_t t, int64_t h) const { return ((b * queries + t) * heads + h) * width; }
  DEVICE int64_t key(int64_t b, int64_t s, int64_t g) const { return ((b * keys + s) * groups + g) * width; }
  DEVICE int64_t row(int64_t b, int64_t t, int64_t h) const { return (b * heads + h) * queries + t; }  // in lse
  DEVICE int64_t query_step() const { return heads * width; }  // elements from one query to the next
  DEVICE int64_t key_step() const { return groups * width; }
  /// Keys that query t sees.
  DEVICE int64_t seen(int64_t t) const {
    const int64_t last = t + 1 + keys - queries;
    return !causal || last > keys ? keys : last < 0 ? 0 : last;
  }
  /// The first query that sees key s; negative if all do.
  DEVICE int64_t first_query(int64_t s) const { return causal ? s - (keys - queries) : 0; }
};

constexpr int kWidestTile = 256;  // columns

/// Slices of a head's columns: a block of threads has the sums of one. Only those of the widest tile are several.
constexpr int64_t slices_of(const AttentionShape& shape, int slice) {
  return slice < kWidestTile || shape.width <= slice ? 1 : (shape.width + slice - 1) / slice;
}

/// The queries of a head whose sums a block of threads has, of the columns from `column` on. Blocks with the most keys come first.
struct QueryBlock {
  int64_t b, h, group;  // `group` of keys and values that head h reads
  int64_t t0, column;
  int queries;

  DEVICE QueryBlock(const AttentionShape& shape, int rows, int slice) {
    const int64_t slices = slices_of(shape, slice), all_heads = shape.batch * shape.heads, head = block_index() / slices % all_heads;
    b = head / shape.heads;
    h = head % shape.heads;
    group = h / (shape.heads / shape.groups);
    t0 = (grid_blocks() / slices / all_heads - 1 - block_index() / slices / all_heads) * rows;
    column = block_index() % slices * slice;
    queries = within(shape.queries - t0, rows);
  }
  DEVICE int64_t query(const AttentionShape& shape, int t) const { return shape.query(b, t0 + t, h); }
  DEVICE int64_t key(const AttentionShape& shape, int64_t s) const { return shape.key(b, s, group); }
  DEVICE int64_t row(const AttentionShape& shape, int t) const { return shape.row(b, t0 + t, h); }
  /// Keys that any of them sees.
  DEVICE int64_t seen(const AttentionShape& shape) const { return shape.seen(t0 + queries - 1); }
};

/// The keys of a group whose sums a block of threads has, of the columns from `column` on.
struct KeyBlock {
  int64_t b, group, s0, column;
  int keys;

  DEVICE KeyBlock(const AttentionShape& shape, int rows, int slice) {
    const int64_t slices = slices_of(shape, slice), all_groups = shape.batch * shape.groups;
    const int64_t at = block_index() / slices % all_groups;
    b = at / shape.groups;
    group = at % shape.groups;
    s0 = block_index() / slices / all_groups * rows;
    column = block_index() % slices * slice;
    keys = within(shape.keys - s0, rows);
  }
  DEVICE int64_t key(const AttentionShape& shape, int s) const { return shape.key(b, s0 + s, group); }
  /// The heads that read the group are those from `first_head` to before `end_head`.
  DEVICE int64_t first_head(const AttentionShape& shape) const { return group * (shape.heads / shape.groups); }
  DEVICE int64_t end_head(const AttentionShape& shape) const { return (group + 1) * (shape.heads / shape.groups); }
  /// Where the queries that see any of them begin, rounded down to a tile.
  DEVICE int64_t first_query(const AttentionShape& shape, int rows) const {
    const int64_t query = shape.first_query(s0);
    return (query < 0 ? 0 : query) / rows * rows;
  }
};

/// Blocks of threads for all queries or all keys.
inline int64_t query_blocks(const AttentionShape& shape, int rows, int slice) {
  return tiles_of(shape.queries, rows) * shape.batch * shape.heads * slices_of(shape, slice);
}
inline int64_t key_blocks(const AttentionShape& shape, int rows, int slice) {
  return tiles_of(shape.keys, rows) * shape.batch * shape.groups * slices_of(shape, slice);
}

}  // namespace st::cuda
