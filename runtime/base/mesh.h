// How the ranks of a group are laid out along the axes of parallelism: the one place that says the order of ranks.
#pragma once

#include "base/error.h"

namespace st {

enum class MeshAxis { tensor, data, stage };

/// Ranks of one tensor group are next to each other, since they exchange most; then come data ranks, then stages: rank = tensor + tensors *
/// (data + datas * stage), as in Megatron-LM. Degrees are 1 or more.
struct Mesh {
  int tensors = 1, datas = 1, stages = 1;

  int size() const { return tensors * datas * stages; }
};

struct MeshPosition {
  int tensor = 0, data = 0, stage = 0;

  bool operator==(const MeshPosition&) const = default;
};

/// Throws invalid_argument, with the product, if the mesh does not have this number of ranks.
inline void check_mesh(const Mesh& mesh, int ranks) {
  check(mesh.tensors >= 1 && mesh.datas >= 1 && mesh.stages >= 1, "mesh: the degrees must be 1 or more, got ", mesh.tensors, " tensor, ",
        mesh.datas, " data and ", mesh.stages, " stage ranks");
  const int64_t product = int64_t{mesh.tensors} * mesh.datas * mesh.stages;
  check(product == ranks, "mesh: ", mesh.tensors, " tensor x ", mesh.datas, " data x ", mesh.stages, " stage ranks are ", product,
        ", but the group has ", ranks, " ranks; change one of them");
}

inline MeshPosition position_of(const Mesh& mesh, int rank) {
  return {rank % mesh.tensors, rank / mesh.tensors % mesh.datas, rank / (mesh.tensors * mesh.datas)};
}

inline int rank_at(const Mesh& mesh, const MeshPosition& at) { return at.tensor + mesh.tensors * (at.data + mesh.datas * at.stage); }

/// The color with which a rank joins its group along an axis, the ranks that differ in this axis alone: the first of them. With the rank as
/// the key, the order in the group is that of the axis.
inline int color_along(const Mesh& mesh, MeshAxis axis, int rank) {
  MeshPosition at = position_of(mesh, rank);
  (axis == MeshAxis::tensor ? at.tensor : axis == MeshAxis::data ? at.data : at.stage) = 0;
  return rank_at(mesh, at);
}

}  // namespace st
