#include "team/step_rows.h"

#include <string>

#include "base/text.h"
#include "comm/rank_texts.h"
#include "data/stream.h"

namespace st {
namespace {

/// Whose rows a rank gets, if others get the same.
std::string role_of(const Mesh& mesh, const MeshPosition& at) {
  if (mesh.stage == 1 && mesh.tensor == 1) return "";
  const std::string tensor = mesh.tensor == 1 ? "" : text("tensor rank ", at.tensor, " of "), stage = text("stage ", at.stage, " of ");
  const char* who = mesh.stage == 1 ? "tensor ranks" : mesh.tensor == 1 ? "stages" : "ranks";
  return text("; it is ", tensor, mesh.stage == 1 ? "" : stage, "data rank ", at.data, ", whose rows all its ", who, " get");
}

}  // namespace

int64_t rows_of_all(const Communicator& ranks, const Mesh& mesh, std::span<const RankReport> reports, int64_t batch) {
  if (reports[0].rows == RankReport::kFromData) return RankReport::kFromData;
  int64_t rows = 0;
  for (int32_t data = 0; data < mesh.data; ++data) rows += reports[static_cast<size_t>(rank_at(mesh, {.data = data}))].rows;
  for (int rank = 0; rank < ranks.size(); ++rank) {
    const MeshPosition at = position_of(mesh, rank);
    const int64_t full = rows / batch, rest = rows % batch;
    const int64_t due =
        MicroBatches{.per_step = full, .ranks = mesh.data, .rank = at.data}.own() * batch + (full % mesh.data == at.data ? rest : 0);
    const int64_t theirs = reports[static_cast<size_t>(rank)].rows;
    if (theirs != due)
      refuse_rank(ranks, rank, "",
                  text("step: ", text_of_rank(ranks, rank), " was given ", theirs, " rows, but its share of the ", rows,
                       " rows of all ranks is ", due, ", in micro-batches of ", batch, " dealt in turn", role_of(mesh, at)));
  }
  return rows;
}

}  // namespace st
