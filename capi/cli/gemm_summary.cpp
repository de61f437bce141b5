#include "gemm_summary.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "quantiles.h"

namespace cli {
namespace {

constexpr std::array<std::string_view, 3> kBlas = {"openblas", "openblas-haswell", "blis"};
constexpr double kBlasFloor = 1.10, kWorstFloor = 0.97, kScalingGoal = 1.9;

bool is_square(const GemmShape& s) { return s.m == s.n && s.n == s.k; }

/// Fractions of the one-thread peak that are the project's goals. 16-bit types compare with the faster of vdpbf16ps and the FMA, since the
/// kernels may widen; the fraction of the tiles' (AMX) peak is reported in addition.
struct Class {
  const char* name;
  bool (*holds)(const GemmShape& shape, bool packed);
  double goal, goal16;  // 0: none
};
constexpr Class kClasses[] = {
    {"squares of 1024 and above", [](const GemmShape& s, bool packed) { return is_square(s) && !packed && s.m >= 1024; }, 0.96, 0.94},
    {"squares of 512", [](const GemmShape& s, bool packed) { return is_square(s) && !packed && s.m == 512; }, 0.94, 0.94},
    {"packed, 256 rows and above", [](const GemmShape& s, bool packed) { return packed && s.m >= 256; }, 0.98, 0.94},
    {"packed, 8 rows", [](const GemmShape& s, bool packed) { return packed && s.m == 8; }, 0.92, 0},
};

/// Fraction of the vector units' peak: the FMA's, or vdpbf16ps's if that is faster.
std::vector<double> vector_fraction(const BenchRow& row) {
  if (row.fractions.empty()) return row.fraction;
  std::vector<double> least = row.fractions.at("fma");
  if (const auto it = row.fractions.find("vdpbf16ps"); it != row.fractions.end())
    for (size_t i = 0; i < least.size(); ++i) least[i] = std::min(least[i], it->second[i]);
  return least;
}

std::string line(const char* format, auto... values) {
  char text[320];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

}  // namespace

Json GemmSummary::json() const {
  Json all = Json::object();
  for (const Element element : {Element::fp32, Element::bf16, Element::fp16})
    if (const Rows rows = rows_of(element); !rows.empty()) all[name_of(element)] = of(rows, element);
  return all;
}

GemmSummary::Rows GemmSummary::rows_of(Element element) const {
  Rows rows;
  for (const Row& it : rows_)
    if (it.shape.element == element) rows.push_back(&it);
  return rows;
}

Json GemmSummary::of(const Rows& rows, Element element) {
  Json summary = {{"rows", rows.size()}};
  compare_with_peers(rows, element, summary);
  for (const Class& kind : kClasses) {
    Json share = share_of(rows, kind.holds);
    if (share.empty()) continue;
    share["class"] = kind.name;
    const double goal = element == Element::fp32 ? kind.goal : element == Element::bf16 ? kind.goal16 : 0;
    if (goal > 0) share["goal"] = goal;
    summary["peak"].push_back(share);
  }
  if (const Json scaling = scaling_of(rows); !scaling.empty()) summary["scaling"] = scaling;
  return summary;
}

void GemmSummary::compare_with_peers(const Rows& rows, Element element, Json& summary) {
  std::map<std::string, std::vector<double>> peers;
  std::vector<double> best, best_blas;
  std::pair<double, std::string> worst;
  std::string worst_name;
  for (const Row* it : rows) {
    for (const auto& [name, speed] : it->row.peers) peers[name].push_back(ratio_of(it->row.own, speed).median);
    if (const double least = BenchRows::least_ratio(it->row, kBlas).first; least > 0) best_blas.push_back(least);
    const auto least = BenchRows::least_ratio(it->row);
    if (least.first == 0) continue;
    best.push_back(least.first);
    if (worst_name.empty() || least.first < worst.first) worst = least, worst_name = it->row.name;
  }
  for (const auto& [name, ratios] : peers) summary["peers"][name] = geometric_mean(ratios);
  if (!best_blas.empty()) summary["best_blas"]["geomean"] = geometric_mean(best_blas);
  if (!best_blas.empty() && element == Element::fp32) summary["best_blas"]["floor"] = kBlasFloor;
  if (best.empty()) return;
  summary["best"] = {{"geomean", geometric_mean(best)}};
  summary["worst"] = {{"name", worst_name}, {"peer", worst.second}, {"ratio", worst.first}, {"floor", kWorstFloor}};
}

/// {} if no row is in the class; "amx" only if its peak was measured.
Json GemmSummary::share_of(const Rows& rows, bool (*holds)(const GemmShape&, bool)) {
  std::vector<double> shares, of_tiles;
  std::string least;
  for (const Row* it : rows) {
    if (!holds(it->shape, it->packed)) continue;
    const double share = quantile(vector_fraction(it->row), 0.5);
    if (shares.empty() || share < std::ranges::min(shares)) least = it->row.name;
    shares.push_back(share);
    if (const auto tiles = it->row.fractions.find("amx"); tiles != it->row.fractions.end())
      of_tiles.push_back(quantile(tiles->second, 0.5));
  }
  if (shares.empty()) return Json::object();
  Json share = {{"class", ""}, {"rows", shares.size()}, {"geomean", geometric_mean(shares)}, {"least", std::ranges::min(shares)}};
  share["name"] = least;
  if (!of_tiles.empty()) share["amx"] = geometric_mean(of_tiles);
  return share;
}

Json GemmSummary::scaling_of(const Rows& rows) {
  std::vector<double> own, loop;
  std::string least;
  for (const Row* it : rows) {
    if (it->row.scaling.empty()) continue;
    const double times = quantile(it->row.scaling, 0.5);
    if (own.empty() || times < std::ranges::min(own)) least = it->row.name;
    own.push_back(times), loop.push_back(quantile(it->row.loop_scaling, 0.5));
  }
  if (own.empty()) return Json::object();
  Json scaling = {{"geomean", geometric_mean(own)}, {"least", std::ranges::min(own)}, {"name", least}};
  scaling["loop"] = geometric_mean(loop), scaling["goal"] = kScalingGoal;
  return scaling;
}

std::string GemmSummary::text() const {
  std::string all;
  const Json summaries = json();  // named: a temporary would be destroyed before its items are read
  for (const auto& [element, summary] : summaries.items())
    all += element + ", " + std::to_string(summary["rows"].get<int64_t>()) + " products:\n" + lines_of(summary);
  return all;
}

std::string GemmSummary::lines_of(const Json& s) {
  std::string all;
  const auto number = [](const Json& of, const char* key) { return of[key].get<double>(); };
  const auto name = [](const Json& of, const char* key) { return of[key].get<std::string>(); };
  if (s.contains("peers"))
    for (const auto& [peer, mean] : s["peers"].items()) all += line("  own / %s: %.3f x\n", peer.c_str(), mean.get<double>());
  if (s.contains("best_blas")) {
    all += line("  own / the best of openblas, openblas-haswell, blis: %.3f x", number(s["best_blas"], "geomean"));
    all += s["best_blas"].contains("floor") ? line(" (floor %.2f)\n", kBlasFloor) : "\n";
  }
  if (s.contains("best")) {
    const Json& worst = s["worst"];
    all += line("  own / the best of all: %.3f x\n  worst: %s, %.3f x %s (floor %.2f)\n", number(s["best"], "geomean"),
                name(worst, "name").c_str(), number(worst, "ratio"), name(worst, "peer").c_str(), kWorstFloor);
  }
  if (s.contains("peak"))
    for (const Json& share : s["peak"]) {
      all += line("  %s: %.3f of the peak, least %.3f at %s", name(share, "class").c_str(), number(share, "geomean"),
                  number(share, "least"), name(share, "name").c_str());
      if (share.contains("goal")) all += line(" (goal %.2f)", number(share, "goal"));
      if (share.contains("amx")) all += line("; %.3f of the amx peak", number(share, "amx"));
      all += "\n";
    }
  if (s.contains("scaling"))
    all += line("  threads: %.3f x one, least %.3f at %s (goal %.1f with two); the FMA loop %.3f x\n", number(s["scaling"], "geomean"),
                number(s["scaling"], "least"), name(s["scaling"], "name").c_str(), kScalingGoal, number(s["scaling"], "loop"));
  return all;
}

}  // namespace cli
