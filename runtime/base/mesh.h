// How the ranks of a group are laid out along the axes of parallelism: the one place that says the order of ranks.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace st {

enum class MeshAxis : int32_t { data = 0, tensor = 1, stage = 2, all = 3 };  // all: no axis of its own, but every rank of the mesh
constexpr int32_t kMeshAxes = 3;

constexpr std::string_view name_of(MeshAxis axis) {
  return axis == MeshAxis::data ? "data" : axis == MeshAxis::tensor ? "tensor" : axis == MeshAxis::stage ? "stage" : "all";
}

/// Number of ranks along each axis, 1 or more. Ranks of one tensor group are next to each other, since they exchange most; then come data
/// ranks, then stages: rank = tensor + mesh.tensor * (data + mesh.data * stage), as in Megatron-LM.
struct Mesh {
  int32_t data = 1, tensor = 1, stage = 1;

  int64_t ranks() const { return int64_t{data} * tensor * stage; }
  int32_t size(MeshAxis axis) const {
    if (axis == MeshAxis::all) return static_cast<int32_t>(ranks());
    return axis == MeshAxis::data ? data : axis == MeshAxis::tensor ? tensor : stage;
  }
  bool operator==(const Mesh&) const = default;
};

/// A rank's index along each axis.
struct MeshPosition {
  int32_t data = 0, tensor = 0, stage = 0;

  bool operator==(const MeshPosition&) const = default;
};

/// Throws invalid_argument, with the product, if the mesh does not have this number of ranks.
inline void check_mesh(const Mesh& mesh, int64_t ranks) {
  check(mesh.data >= 1 && mesh.tensor >= 1 && mesh.stage >= 1, "mesh: the degrees must be 1 or more, got ", mesh.tensor, " tensor, ",
        mesh.data, " data and ", mesh.stage, " stage ranks");
  check(mesh.ranks() == ranks, "mesh: ", mesh.tensor, " tensor x ", mesh.data, " data x ", mesh.stage, " stage ranks are ", mesh.ranks(),
        ", but the group has ", ranks, " ranks; change one of them");
}

inline MeshPosition position_of(const Mesh& mesh, int32_t rank) {
  return {.data = rank / mesh.tensor % mesh.data, .tensor = rank % mesh.tensor, .stage = rank / (mesh.tensor * mesh.data)};
}

inline int32_t rank_at(const Mesh& mesh, const MeshPosition& at) { return at.tensor + mesh.tensor * (at.data + mesh.data * at.stage); }

/// The color with which a rank joins its group along an axis, the ranks that differ in this axis alone: the first of them. With the rank as
/// the key, the order in the group is that of the axis.
inline int32_t color_along(const Mesh& mesh, MeshAxis axis, int32_t rank) {
  MeshPosition at = position_of(mesh, rank);
  (axis == MeshAxis::tensor ? at.tensor : axis == MeshAxis::data ? at.data : at.stage) = 0;
  return rank_at(mesh, at);
}

}  // namespace st
