// attention: o = softmax(scale q k^T) v for each head, and its backward. q, o [B, T, H, D]; k, v [B, S, G, D]; head h reads k and v of
// group h / (H / G); lse [B, H, T]. Causal: query t sees keys 0 .. t + S - T. A row's scores and probabilities are in the workspace.
//
// Backward, per row:  dp = do v^T,  ds = p (dp - sum(p dp)) scale,  dq = ds k,  dk += ds^T q,  dv += p^T do.
// It recomputes the probabilities from q and k, because the stored o and lse are rounded.
#include <algorithm>
#include <limits>

#include "backend/reference/elements.h"
#include "backend/reference/reference_kernels.h"

namespace st::reference {
namespace {

struct Heads {
  int64_t batch, queries, heads, width, keys, groups;
  bool causal;
  double scale;

  explicit Heads(const Call& call)
      : batch(call.in[0].shape[0]),
        queries(call.in[0].shape[1]),
        heads(call.in[0].shape[2]),
        width(call.in[0].shape[3]),
        keys(call.in[1].shape[1]),
        groups(call.in[1].shape[2]),
        causal(call.attrs->flag("causal")),
        scale(call.attrs->real("scale")) {
    if (scale == 0) scale = 1 / std::sqrt(static_cast<double>(width));
  }

  int64_t group_of(int64_t h) const { return h / (heads / groups); }
  int64_t seen(int64_t t) const { return causal ? std::clamp<int64_t>(t + keys - queries + 1, 0, keys) : keys; }
  int64_t query(int64_t b, int64_t t, int64_t h) const { return ((b * queries + t) * heads + h) * width; }
  int64_t key(int64_t b, int64_t s, int64_t g) const { return ((b * keys + s) * groups + g) * width; }

  template <class Body>
  void each_row(Body body) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t t = 0; t < queries; ++t) body(b, h, t);
      }
    }
  }
};

double dot(const Operand& a, int64_t at_a, const Operand& b, int64_t at_b, int64_t n) {
  double sum = 0;
  for (int64_t d = 0; d < n; ++d) sum += get(a, at_a + d) * get(b, at_b + d);
  return sum;
}

/// Fills p[0, seen) of one row and returns the log of the sum of exp of its scores: -inf, and weights of 0, when it sees nothing or all of
/// its scores are -inf.
double probabilities(const Heads& shape, const Operand& q, const Operand& k, int64_t b, int64_t h, int64_t t, double* p) {
  const int64_t seen = shape.seen(t), group = shape.group_of(h);
  double peak = -std::numeric_limits<double>::infinity(), sum = 0;
  for (int64_t s = 0; s < seen; ++s) {
    p[s] = shape.scale * dot(q, shape.query(b, t, h), k, shape.key(b, s, group), shape.width);
    peak = std::max(peak, p[s]);
  }
  const double subtracted = std::isinf(peak) && peak < 0 ? 0 : peak;
  for (int64_t s = 0; s < seen; ++s) {
    p[s] = std::exp(p[s] - subtracted);
    sum += p[s];
  }
  if (sum == 0) return peak;
  for (int64_t s = 0; s < seen; ++s) p[s] /= sum;
  return peak + std::log(sum);
}

void attention(const Call& call) {
  const Operand &q = call.in[0], &k = call.in[1], &v = call.in[2], &o = call.out[0], &lse = call.out[1];
  const Heads shape(call);
  auto* p = reinterpret_cast<double*>(pointer_to(call.workspace));
  shape.each_row([&](int64_t b, int64_t h, int64_t t) {
    set(lse, (b * shape.heads + h) * shape.queries + t, probabilities(shape, q, k, b, h, t, p));
    for (int64_t d = 0; d < shape.width; ++d) {
      double sum = 0;
      for (int64_t s = 0; s < shape.seen(t); ++s) sum += p[s] * get(v, shape.key(b, s, shape.group_of(h)) + d);
      set(o, shape.query(b, t, h) + d, sum);
    }
  });
}

void attention_backward(const Call& call) {
  const Operand &q = call.in[0], &k = call.in[1], &v = call.in[2], &grad = call.in[5];
  const Operand &dq = call.out[0], &dk = call.out[1], &dv = call.out[2];
  const Heads shape(call);
  auto* p = reinterpret_cast<double*>(pointer_to(call.workspace));
  double* ds = p + shape.keys;
  double* sum_dk = ds + shape.keys;  // sums over all rows, rounded once at the end
  double* sum_dv = sum_dk + dk.elements();
  std::fill(sum_dk, sum_dv + dv.elements(), 0.0);

  shape.each_row([&](int64_t b, int64_t h, int64_t t) {
    const int64_t seen = shape.seen(t), row = shape.query(b, t, h);
    const auto key = [&](int64_t s) { return shape.key(b, s, shape.group_of(h)); };
    probabilities(shape, q, k, b, h, t, p);
    double mean = 0;
    for (int64_t s = 0; s < seen; ++s) {
      ds[s] = dot(grad, row, v, key(s), shape.width);
      mean += p[s] * ds[s];
    }
    for (int64_t s = 0; s < seen; ++s) ds[s] = p[s] * (ds[s] - mean) * shape.scale;
    for (int64_t d = 0; d < shape.width; ++d) {
      double of_q = 0;
      for (int64_t s = 0; s < seen; ++s) {
        of_q += ds[s] * get(k, key(s) + d);
        sum_dk[key(s) + d] += ds[s] * get(q, row + d);
        sum_dv[key(s) + d] += p[s] * get(grad, row + d);
      }
      set(dq, row + d, of_q);
    }
  });
  for (int64_t i = 0; i < dk.elements(); ++i) set(dk, i, sum_dk[i]);
  for (int64_t i = 0; i < dv.elements(); ++i) set(dv, i, sum_dv[i]);
}

}  // namespace

constinit const Kernel kernel_attention{attention};
constinit const Kernel kernel_attention_backward{attention_backward};

}  // namespace st::reference
