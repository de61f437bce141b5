// The summary of `bench gemm`, per element type: own speed over the peers', and the fraction of the peak by class of shape, each with the
// goal or minimum that the project has set for it.
#pragma once

#include <string>
#include <vector>

#include "bench_rows.h"
#include "gemm_shapes.h"

namespace cli {

class GemmSummary {
 public:
  void add(const GemmShape& shape, bool packed, const BenchRow& row) { rows_.push_back({shape, packed, row}); }

  /// {"fp32": {"rows": 40, "peers": {..}, "best": .., "best_blas": {..}, "worst": {..}, "peak": [..], "scaling": {..}}, ..}. Keys without
  /// data are left out.
  Json json() const;
  /// The same as text.
  std::string text() const;

 private:
  struct Row {
    GemmShape shape;
    bool packed;
    BenchRow row;
  };
  using Rows = std::vector<const Row*>;  // of one element
  Rows rows_of(Element element) const;
  static Json of(const Rows& rows, Element element);
  static void compare_with_peers(const Rows& rows, Element element, Json& summary);
  static Json share_of(const Rows& rows, bool (*holds)(const GemmShape& shape, bool packed));
  static Json scaling_of(const Rows& rows);
  static std::string lines_of(const Json& summary);

  std::vector<Row> rows_;
};

}  // namespace cli
