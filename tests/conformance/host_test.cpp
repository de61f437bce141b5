// Custom ops, as a host would write them: every backend must pass their operands correctly, and autodiff their gradients.
#include "base/error.h"
#include "conformance.h"
#include "ir/host_op.h"

namespace st::conformance {
namespace {

double get(const OpView& view, int64_t i) {
  return view.dtype == DType::f64 ? static_cast<const double*>(view.data)[i] : double{static_cast<const float*>(view.data)[i]};
}

void set(const OpView& view, int64_t i, double value) {
  if (view.dtype == DType::f64)
    static_cast<double*>(view.data)[i] = value;
  else
    static_cast<float*>(view.data)[i] = static_cast<float>(value);
}

int64_t elements(const OpView& view) { return view.bytes / bytes_of(view.dtype); }

int32_t every_output_as_the_first_input(std::span<const HostType> in, std::span<HostType> out) {
  for (HostType& type : out) type = in[0];
  return 0;
}

/// y = x^3
HostOp cube() {
  return {.name = "cube",
          .outputs = 1,
          .shape = every_output_as_the_first_input,
          .forward =
              [](std::span<const OpView> in, std::span<const OpView> out) {
                for (int64_t i = 0; i < elements(in[0]); ++i) set(out[0], i, get(in[0], i) * get(in[0], i) * get(in[0], i));
                return 0;
              },
          .backward =
              [](auto in, auto, auto dy, auto dx) {
                for (int64_t i = 0; i < elements(in[0]); ++i) set(dx[0], i, 3 * get(in[0], i) * get(in[0], i) * get(dy[0], i));
                return 0;
              }};
}

/// y = a b, z = a + y: the gradients need inputs and outputs.
HostOp blend() {
  return {.name = "blend",
          .outputs = 2,
          .shape = every_output_as_the_first_input,
          .forward =
              [](std::span<const OpView> in, std::span<const OpView> out) {
                for (int64_t i = 0; i < elements(in[0]); ++i) {
                  set(out[0], i, get(in[0], i) * get(in[1], i));
                  set(out[1], i, get(in[0], i) + get(in[0], i) * get(in[1], i));
                }
                return 0;
              },
          .backward =
              [](auto in, auto out, auto d, auto dx) {
                for (int64_t i = 0; i < elements(in[0]); ++i) {
                  const double a = get(out[1], i) - get(out[0], i), b = get(in[1], i), dy = get(d[0], i), dz = get(d[1], i);
                  if (dx[0].data != nullptr) set(dx[0], i, (dy + dz) * b + dz);
                  if (dx[1].data != nullptr) set(dx[1], i, (dy + dz) * a);
                }
                return 0;
              }};
}

Attrs registered(const std::string& name) {
  static auto& ops = *new HostOps;  // never freed: the cases use it
  static const bool once = (ops.add(cube()), ops.add(blend()), true);
  static_cast<void>(once);
  return *ops.attrs_of(name);
}

const Shape kShapes[] = {{}, {3}, {0, 4}, {2, 3, 5}, {7, 11}};

// Both backends run the same callback: the same bits. A callback may read 16-bit storage; these do not.
const Cases host_cases(Op::host, {}, [](Suite& s) {
  for (const Shape& shape : kShapes) {
    s.add({s.normal(shape)}, registered("cube")).dtypes = {DType::f32, DType::f64};
    OpCase& both = s.add({s.normal(shape), s.normal(shape)}, registered("blend"));
    both.dtypes = {DType::f32, DType::f64};
    both.seeded = {0, 1};
  }
  OpCase& second = s.add({s.normal({4}), s.normal({4})}, registered("blend"));  // the first output gets no gradient: zeros
  second.dtypes = {DType::f32, DType::f64};
  second.seeded = {1};
});

const Cases host_backward_cases(Op::host_backward, {}, [](Suite& s) {
  for (const Ints& wanted : {Ints{0, 1}, Ints{0}, Ints{1}})
    for (const Shape& shape : kShapes) {
      Attrs attrs = registered("blend");
      attrs.set("inputs", int64_t{2});
      attrs.set("wanted", wanted);
      const auto x = [&] { return s.normal(shape); };
      s.add({x(), x(), x(), x(), x(), x()}, attrs).dtypes = {DType::f32, DType::f64};
    }
});

}  // namespace
}  // namespace st::conformance
