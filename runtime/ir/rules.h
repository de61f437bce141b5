// Shape and layout rules, named in ops.def. A shape rule maps input types and attributes to output types (dtype and shape), or throws
// invalid_argument with the op and the shapes. A layout rule does the same for the layouts along one axis of the mesh.
#pragma once

#include <span>
#include <vector>

#include "ir/program.h"

namespace st {

struct OpTypes {
  Op op;
  std::span<const Type> in;
  const Attrs& attrs;
};

/// Output types of an op, layouts included. Along mesh axes of size 1 everything is replicated.
std::vector<Type> infer(const OpTypes& op, const Mesh& mesh);
/// The same for a node of a program; a load has its slot's type. Does not check stores; verify() does.
std::vector<Type> infer(const Program& program, const Graph& graph, const Node& node);

/// The two halves: shapes and dtypes (layouts left replicated), then the layouts of `out`.
std::vector<Type> infer_shapes(const OpTypes& op);
void infer_layouts(const OpTypes& op, const Mesh& mesh, std::vector<Type>& out);

}  // namespace st
