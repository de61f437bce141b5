// Every attribute of ops.def with a domain refuses values outside it; attributes without one accept any number.
#include <gtest/gtest.h>

#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"
#include "base/interval.h"
#include "ir/build.h"
#include "ir/op.h"

namespace st {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

/// The row's defaults; for attributes without one, some valid value of their type.
Attrs defaults_of(const OpInfo& info) {
  Attrs attrs;
  for (const OpAttr& attr : info.attrs) attrs.set(attr.name, attr.name == "dtype" ? AttrValue(std::string("f32")) : attr.standard);
  return attrs;
}

std::string refusal(Op op, const Attrs& attrs) {
  try {
    make_attrs(op, attrs);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Code::invalid_argument) << error.message();
    return error.message();
  }
  return "";
}

TEST(AttrDomains, RefuseEveryNumberOutside) {
  int domains = 0;
  for (int32_t i = 0; i < kOps; ++i) {
    const OpInfo& info = info_of(static_cast<Op>(i));
    for (const OpAttr& attr : info.attrs) {
      if (attr.domain.empty() || !std::holds_alternative<double>(attr.standard)) continue;
      ++domains;
      for (const double value : {kNaN, -kInfinity, kInfinity, -1e30, -1.0, 0.0, 1.0, 0.5, 1e30}) {
        Attrs attrs = defaults_of(info);
        attrs.set(attr.name, value);
        const std::string message = refusal(info.op, attrs);
        EXPECT_EQ(message.empty(), is_inside(value, attr.domain)) << info.name << " " << attr.name << " " << value << ": " << message;
        if (message.empty()) continue;
        for (const std::string& word : {std::string(info.name), attr.name, std::string("must be in")})
          EXPECT_NE(message.find(word), std::string::npos) << message;
      }
    }
  }
  EXPECT_GT(domains, 40);
}

TEST(AttrDomains, ArgumentsWithoutOneTakeNaN) {
  for (const auto& [op, name] : {std::pair{Op::fill, "value"}, {Op::affine, "scale"}, {Op::clamp, "low"}}) {
    Attrs attrs = defaults_of(info_of(op));
    attrs.set(name, kNaN);
    EXPECT_EQ(refusal(op, attrs), "");
    EXPECT_TRUE(are_whole(op, attrs));
    EXPECT_EQ(make_attrs(op, attrs), attrs) << "a node with NaN is as it was made";
  }
}

}  // namespace
}  // namespace st
