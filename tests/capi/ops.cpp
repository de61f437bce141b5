// The typed wrappers of ops.h: each makes the op of its name, with its attributes and its resulting shape.
#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>
#include <vector>

#include "op_rows.h"

namespace {

using namespace st::test;

class Ops : public testing::Test {
 protected:
  HeldContext context = hold<HeldContext>(st_context_create, nullptr);
};

TEST_F(Ops, HaveAWrapperEachAndEachWrapperIsTestedHere) {
  std::ifstream file(ST_OPS_HEADER);
  std::stringstream header;
  header << file.rdbuf();
  const std::string text = header.str();
  const std::regex wrapper("static inline st_value st_op_(\\w+)\\(");
  std::set<std::string> declared, tested;
  for (std::sregex_iterator found(text.begin(), text.end(), wrapper), end; found != end; ++found) declared.insert((*found)[1]);
  for (const OpRow& row : op_rows()) tested.insert(row.op);
  EXPECT_GT(declared.size(), 45U);
  EXPECT_EQ(declared, tested);
}

TEST_F(Ops, MakeTheShapeThatTheRowTells) {
  for (const OpRow& row : op_rows()) {
    const Parts parts(context);
    const st_value value = row.wrapper(parts);
    auto info = filled(st_value_info_init);
    ASSERT_TRUE(works(st_graph_value(parts, value, &info))) << row.op;
    EXPECT_EQ(info.dtype, row.dtype) << row.op;
    EXPECT_EQ(std::vector<int64_t>(info.dims, info.dims + info.rank), row.dims) << row.op;
  }
}

TEST_F(Ops, ByTheirWrappersAreTheOpsByTheirNames) {
  for (const OpRow& row : op_rows()) {
    const Parts typed(context), named(context);
    const std::string before = text_of(st_graph_text, named);
    row.wrapper(typed);
    std::vector<st_value> inputs, values(2);
    for (const auto input : row.inputs) inputs.push_back(named.*input);
    EXPECT_TRUE(works(st_graph_op(named, row.op, static_cast<int32_t>(inputs.size()), inputs.data(), row.attributes, 2, values.data())));
    EXPECT_EQ(text_of(st_graph_text, typed), text_of(st_graph_text, named)) << row.op;
    EXPECT_NE(text_of(st_graph_text, named), before) << row.op;
  }
}

TEST_F(Ops, GiveFurtherResultsWhereTheyAreWanted) {
  const Parts p(context);
  st_value mean = 0, rstd = 0, lse = 0, count = 0;
  st_value pieces[3] = {0, 0, 9};
  EXPECT_GT(st_op_layer_norm(p, p.x, p.vector, p.vector, 1e-5, &mean, &rstd), 0);
  EXPECT_GT(st_op_attention(p, p.q, p.k, p.k, 1, 0, &lse), 0);
  EXPECT_GT(st_op_mse(p, p.x, p.y, ST_NONE, &count), 0);
  EXPECT_GT(st_op_split(p, p.x, 1, 2, kSizes.data(), 3, pieces), 0);
  EXPECT_EQ(pieces[2], 0) << "the rest of the array becomes 0";
  const auto dims_of = [&](st_value value) {
    const auto info = filled(st_value_info_init, st_graph_value, p, value);
    return std::vector<int64_t>(info.dims, info.dims + info.rank);
  };
  EXPECT_EQ(dims_of(mean), std::vector<int64_t>{ST_BATCH});
  EXPECT_EQ(dims_of(rstd), std::vector<int64_t>{ST_BATCH});
  EXPECT_NE(mean, rstd);
  EXPECT_EQ(dims_of(lse), (std::vector<int64_t>{ST_BATCH, 4, 3}));
  EXPECT_EQ(dims_of(count), std::vector<int64_t>{});
  EXPECT_EQ(dims_of(pieces[1]), (std::vector<int64_t>{ST_BATCH, 4}));
}

TEST_F(Ops, TakeDefaultsForNullWords) {
  const Parts typed(context), named(context);
  st_value value = 0;
  EXPECT_GT(st_op_gelu(typed, typed.x, nullptr), 0);
  EXPECT_GT(st_op_fill(typed, 2, kSizes.data(), 1, 0), 0);
  EXPECT_TRUE(works(st_graph_op(named, "gelu", 1, &named.x, nullptr, 1, &value)));
  EXPECT_TRUE(works(st_graph_op(named, "fill", 0, nullptr, R"({"shape": [2, 4], "value": 1})", 1, &value)));
  EXPECT_EQ(text_of(st_graph_text, typed), text_of(st_graph_text, named));
}

TEST_F(Ops, ThatAreWrongAreNamedWithTheirShapesAtModelCreate) {
  const Parts p(context);
  HeldModel model;
  st_value y = st_op_matmul(p, p.x, p.bias, 0, 0);  // wrong
  EXPECT_EQ(y, 0);
  y = st_op_gelu(p, y, nullptr);      // propagates it
  y = st_op_gelu(p, p.x, "perhaps");  // wrong too, but later
  EXPECT_EQ(y, 0);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_model_create(p, 0, model.out()), {"st_graph_apply", "matmul", "[4]"}));
  const auto info = last_error();
  EXPECT_STREQ(info.op, "matmul");
}

TEST_F(Ops, WithoutAnInputThatIsNeededAreRefused) {
  for (const bool invalid : {true, false}) {
    const Parts p(context);
    EXPECT_EQ(st_op_mse(p, p.x, invalid ? 0 : ST_NONE, ST_NONE, nullptr), 0);
    EXPECT_NE(std::strstr(st_last_error(), invalid ? "value 0" : "ST_NONE"), nullptr) << st_last_error();
  }
  const Parts p(context);
  EXPECT_EQ(st_op_mse(p, p.x, p.y, 0, nullptr), 0) << "0 propagates an error; it does not mean a missing input";
  const Parts other(context);
  const st_value xs[] = {other.x, ST_NONE};
  EXPECT_EQ(st_op_concat(other, 2, xs, 1), 0);
}

}  // namespace
