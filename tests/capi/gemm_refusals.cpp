// Requests that st_gemm refuses, and the messages.
#include <thread>

#include "gemm_case.h"
#include "inside.h"

namespace {

using namespace st::test;

class GemmRefusals : public testing::Test {
 protected:
  GemmRefusals() {
    auto options = filled(st_context_options_init);
    options.threads = 1;
    options.memory_limit = 1 << 26;
    EXPECT_TRUE(works(st_context_create(&options, context_.out())));
  }

  template <class Change>
  void refuse_problem(st_status status, std::initializer_list<std::string_view> words, const Change& change) {
    auto problem = filled(st_gemm_problem_init);
    problem.m = 4, problem.n = 5, problem.k = 6;
    change(problem);
    st_gemm* made = nullptr;
    EXPECT_TRUE(fails(status, st_gemm_plan_create(context_, &problem, nullptr, &made), words));
    EXPECT_EQ(made, nullptr);
  }
  template <class Change>
  void refuse_schedule(st_status status, std::initializer_list<std::string_view> words, const Change& change) {
    const GemmCase x({300, 300, 300});
    auto schedule = filled(st_gemm_schedule_init);
    change(schedule);
    st_gemm* made = nullptr;
    EXPECT_TRUE(fails(status, st_gemm_plan_create(context_, &x.problem, &schedule, &made), words));
    EXPECT_EQ(made, nullptr);
  }

  HeldContext context_;
};

TEST_F(GemmRefusals, OfProblems) {
  const auto invalid = [&](std::initializer_list<std::string_view> words, auto change) {
    refuse_problem(ST_INVALID_ARGUMENT, words, change);
  };
  invalid({"m -4"}, [](st_gemm_problem& p) { p.m = -4; });
  invalid({"batch -1"}, [](st_gemm_problem& p) { p.batch = -1; });
  invalid({"A of", "further than any memory"}, [](st_gemm_problem& p) { p.m = p.k = INT64_MAX; });
  invalid({"overflows 64 bits"}, [](st_gemm_problem& p) { p.m = p.n = p.k = int64_t{1} << 28; });
  invalid({"elements of A of 4x6 share memory", "at least 6"}, [](st_gemm_problem& p) { p.a_row = 5; });
  invalid({"elements of B"}, [](st_gemm_problem& p) { p.b_column = 5; });
  invalid({"elements of C of 4x5"}, [](st_gemm_problem& p) { p.c_row = 4; });
  invalid({"must not be negative", "-5"}, [](st_gemm_problem& p) { p.c_row = -5; });
  invalid({"2 matrices of C overlap", "19"}, [](st_gemm_problem& p) { p.batch = 2, p.c_batch = 19; });
  invalid({"shared_a is 2"}, [](st_gemm_problem& p) { p.shared_a = 2; });
  invalid({"b_batch is 30 and shared_b is 1"}, [](st_gemm_problem& p) { p.shared_b = 1, p.b_batch = 30; });
  refuse_problem(ST_UNSUPPORTED, {"dtype 2", "cast"}, [](st_gemm_problem& p) { p.a_dtype = ST_F64; });
  refuse_problem(ST_UNSUPPORTED, {"dtype 5"}, [](st_gemm_problem& p) { p.c_dtype = ST_I32; });
  invalid({"struct_size is 8"}, [](st_gemm_problem& p) { p.struct_size = 8; });
}

TEST_F(GemmRefusals, OfSchedules) {
  const auto invalid = [&](std::initializer_list<std::string_view> words, auto change) {
    refuse_schedule(ST_INVALID_ARGUMENT, words, change);
  };
  invalid({"tile_m must be 0 (choose) to 1048576, got -1"}, [](st_gemm_schedule& s) { s.tile_m = -1; });
  invalid({"tile_k must be", "1048576, got 1099511627776"}, [](st_gemm_schedule& s) { s.tile_k = int64_t{1} << 40; });
  invalid({"micro_m must be 0 (choose) to", "got 65"}, [](st_gemm_schedule& s) { s.micro_m = 65; });
  invalid({"threads is -2"}, [](st_gemm_schedule& s) { s.threads = -2; });
  invalid({"order is 3"}, [](st_gemm_schedule& s) { s.order = 3; });
  invalid({"packing is -1"}, [](st_gemm_schedule& s) { s.packing = -1; });
  invalid({"tune_ms is -1"}, [](st_gemm_schedule& s) { s.tune_ms = -1; });
  invalid({"library is 2", "ST_GEMM_LIBRARY_AUTO (1)"}, [](st_gemm_schedule& s) { s.library = 2; });
  invalid({"max_scratch_bytes must be at least 0", "got -1"}, [](st_gemm_schedule& s) { s.max_scratch_bytes = -1; });
  refuse_schedule(ST_UNSUPPORTED, {"at most 128 rows", "300 rows"}, [](st_gemm_schedule& s) { s.packing = ST_GEMM_PACKING_IN_PLACE; });
  refuse_schedule(ST_OUT_OF_MEMORY, {"tile ", "10000", "the largest that fits is tile"}, [](st_gemm_schedule& s) {
    s.tile_m = s.tile_n = s.tile_k = 300;
    s.max_scratch_bytes = 10000;
  });
}

TEST_F(GemmRefusals, OfTilesBeyondTheContextsLimitNameTheLargestThatFits) {
  auto options = filled(st_context_options_init);
  options.memory_limit = 1 << 14;
  context_.reset();
  ASSERT_TRUE(works(st_context_create(&options, context_.out())));
  const GemmCase x({2000, 2000, 2000});
  auto schedule = filled(st_gemm_schedule_init);
  schedule.tile_k = 500;  // a panel of 6 rows and 16 columns alone takes 44 KB
  for (const int64_t most : {int64_t{0}, int64_t{1} << 30}) {
    schedule.max_scratch_bytes = most;
    st_gemm* made = nullptr;
    EXPECT_TRUE(fails(
        ST_OUT_OF_MEMORY, st_gemm_plan_create(context_, &x.problem, &schedule, &made),
        {"tile ", "x500 in blocks of", "bytes of scratch, the context has 16384 left of memory_limit", "the largest that fits is tile"}));
    EXPECT_EQ(made, nullptr);
  }
}

TEST_F(GemmRefusals, AreNotWhatAChosenTileMeetsThatIsMadeToFitTheContextsLimit) {
  GemmCase x({600, 600, 600});
  const HeldGemm free = x.plan(context_);
  auto of_free = filled(st_gemm_info_init), info = of_free;
  ASSERT_TRUE(works(st_gemm_plan_info(free, &of_free)));
  ASSERT_TRUE(works(x.run(free, 1, 0)));
  auto options = filled(st_context_options_init);
  options.threads = 1;
  options.memory_limit = of_free.scratch_bytes / 2;
  const auto tight = hold<HeldContext>(st_context_create, &options);
  GemmCase y({600, 600, 600});
  const HeldGemm fitted = y.plan(tight);
  ASSERT_TRUE(works(st_gemm_plan_info(fitted, &info)));
  EXPECT_LE(info.scratch_bytes, options.memory_limit);
  EXPECT_EQ(info.tile_k, of_free.tile_k);
  ASSERT_TRUE(works(y.run(fitted, 1, 0)));
  EXPECT_EQ(y.c.bytes(), x.c.bytes());
  // Further plans must use what is left, until it is too little for any.
  std::vector<HeldGemm> plans;
  int64_t left = options.memory_limit - info.scratch_bytes;
  for (st_status status = ST_OK; status == ST_OK && plans.size() < 1000;) {
    st_gemm** made = plans.emplace_back().out();
    status = st_gemm_plan_create(tight, &y.problem, nullptr, made);
    if (status != ST_OK) {
      EXPECT_TRUE(fails(ST_OUT_OF_MEMORY, status, {"the context has " + std::to_string(left) + " left"}));
      return;
    }
    ASSERT_TRUE(works(st_gemm_plan_info(*made, &info)));
    ASSERT_LE(info.scratch_bytes, left);
    left -= info.scratch_bytes;
  }
  ADD_FAILURE() << "a thousand plans fit into " << options.memory_limit << " bytes";
}

TEST_F(GemmRefusals, OfViewsThatAreNotThePlans) {
  GemmCase x({4, 5, 6});
  const HeldGemm gemm = x.plan(context_);
  const st_view a = x.a.view(), b = x.b.view(), c = x.c.view();
  const auto run = [&](const st_view& of_a, const st_view& of_b, const st_view& of_c) {
    return st_gemm_run(gemm, 1, &of_a, &of_b, 0, &of_c, nullptr);
  };
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, run(b, b, c), {"\"a\" has shape [6, 5]", "[4, 6]"}));
  st_view wrong = a;
  wrong.rank = 1;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, run(wrong, b, c), {"\"a\" has shape"}));
  wrong = b;
  wrong.dtype = ST_BF16;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, run(a, wrong, c), {"\"b\" is bf16, the plan's is f32"}));
  wrong = c;
  wrong.bytes = 79;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, run(a, b, wrong), {"\"c\"", "needs 80 bytes, but it has 79"}));
  wrong = a;
  wrong.data = nullptr;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, run(wrong, b, c), {"\"a\" has no data"}));
  const int64_t transposed[] = {1, 4};
  wrong = a;
  wrong.strides = transposed;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, run(wrong, b, c), {"\"a\"", "strides [1, 4]", "6 between rows"}));
  const auto info = last_error();
  EXPECT_STREQ(info.tensor, "a");
}

TEST_F(GemmRefusals, OfViewsThatLieBetweenElements) {
  for (const st_dtype dtype : {ST_F32, ST_BF16}) {
    GemmShape shape{4, 5, 6};
    shape.a_dtype = shape.b_dtype = shape.c_dtype = dtype;
    GemmCase x(shape);
    const HeldGemm gemm = x.plan(context_);
    const st_view a = x.a.view(), b = x.b.view(), c = x.c.view();
    alignas(8) char room[129];
    const std::string address = std::to_string(reinterpret_cast<uintptr_t>(room + 1));
    const auto between = [&](st_view view) {
      view.data = room + 1;
      return view;
    };
    const st_view of_a = between(a), of_b = between(b), of_c = between(c);
    const auto refused = [&](st_status status, std::string_view name) {
      return fails(ST_INVALID_ARGUMENT, status, {name, dtype == ST_F32 ? "f32 at" : "bf16 at", address, dtype == ST_F32 ? "of 4" : "of 2"});
    };
    EXPECT_TRUE(refused(st_gemm_run(gemm, 1, &of_a, &b, 0, &c, nullptr), "\"a\""));
    EXPECT_TRUE(refused(st_gemm_run(gemm, 1, &a, &of_b, 0, &c, nullptr), "\"b\""));
    EXPECT_TRUE(refused(st_gemm_run(gemm, 1, &a, &b, 0, &of_c, nullptr), "\"c\""));
    st_packed* packed = nullptr;
    EXPECT_TRUE(refused(st_gemm_pack(gemm, &of_b, &packed), "\"b\""));
    auto epilogue = filled(st_epilogue_init);
    epilogue.residual = &of_c;
    EXPECT_TRUE(refused(st_gemm_run(gemm, 1, &a, &b, 0, &c, &epilogue), "\"residual\""));
    const int64_t five[] = {5};
    const st_view vector = {dtype, 1, five, nullptr, room + 1, 20};
    epilogue = filled(st_epilogue_init);
    epilogue.bias = &vector;
    EXPECT_TRUE(refused(st_gemm_run(gemm, 1, &a, &b, 0, &c, &epilogue), "\"bias\""));
    EXPECT_TRUE(works(st_gemm_run(gemm, 1, &a, &b, 0, &c, nullptr)));
  }
}

TEST_F(GemmRefusals, OfOverlapsWithWhatIsWritten) {
  GemmCase x({5, 5, 5});
  const HeldGemm gemm = x.plan(context_);
  const st_view a = x.a.view(), b = x.b.view(), c = x.c.view();
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_gemm_run(gemm, 1, &a, &b, 0, &a, nullptr), {"\"c\" and \"a\" share memory"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_gemm_run(gemm, 1, &a, &b, 0, &b, nullptr), {"\"c\" and \"b\""}));
  EXPECT_TRUE(works(st_gemm_run(gemm, 1, &a, &a, 0, &c, nullptr))) << "views that are only read may share memory";
  auto epilogue = filled(st_epilogue_init);
  epilogue.residual = &c;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_gemm_run(gemm, 1, &a, &b, 0, &c, &epilogue), {"\"residual\" and \"c\""}));
  epilogue.residual = nullptr;
  epilogue.pre_activation = &b;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_gemm_run(gemm, 1, &a, &b, 0, &c, &epilogue), {"\"pre_activation\" and \"b\""}));
  const int64_t five[] = {5};
  const st_view row = {ST_F32, 1, five, nullptr, c.data, 20};
  epilogue.pre_activation = nullptr;
  epilogue.column_sums = &row;
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_gemm_run(gemm, 1, &a, &b, 0, &c, &epilogue), {"\"column_sums\" and \"c\""}));
}

TEST_F(GemmRefusals, OfEpilogues) {
  GemmCase x({5, 6, 5});
  const HeldGemm gemm = x.plan(context_);
  Matrices other(ST_F32, 1, 5, 6, 6, 1, 30, 7);
  const st_view like_c = other.view();
  float values[12] = {};
  const int64_t six[] = {6}, two[] = {2};
  const st_view vector = {ST_F32, 1, six, nullptr, values, sizeof values};
  const auto refused = [&](std::initializer_list<std::string_view> words, auto change) {
    auto epilogue = filled(st_epilogue_init);
    change(epilogue);
    EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, x.run(gemm, 1, 0, nullptr, &epilogue), words));
  };
  refused({"activation is 9"}, [](st_epilogue& e) { e.activation = 9; });
  refused({"derivative_at", "without an activation"}, [&](st_epilogue& e) { e.derivative_at = &like_c; });
  refused({"pre_activation and derivative_at"}, [&](st_epilogue& e) {
    e.activation = ST_ACTIVATION_RELU;
    e.derivative_at = e.pre_activation = &like_c;
  });
  st_view wrong = vector;
  wrong.dims = two;
  refused({"\"bias\" has shape [2]", "[6]"}, [&](st_epilogue& e) { e.bias = &wrong; });
  wrong = vector;
  wrong.dtype = ST_BF16;
  refused({"\"column_sums\" is bf16"}, [&](st_epilogue& e) { e.column_sums = &wrong; });
  wrong = vector;
  wrong.strides = two;
  refused({"\"bias\" has stride 2"}, [&](st_epilogue& e) { e.bias = &wrong; });
  wrong = like_c;
  wrong.rank = 1;
  refused({"\"residual\" has shape"}, [&](st_epilogue& e) { e.residual = &wrong; });
  wrong = like_c;
  const int64_t same[] = {0, 1};
  wrong.strides = same;
  refused({"\"residual\"", "share memory through its strides"}, [&](st_epilogue& e) { e.residual = &wrong; });
  refused({"struct_size"}, [&](st_epilogue& e) { e.struct_size = 1; });
  EXPECT_TRUE(works(x.run(gemm, 1, 0, nullptr, nullptr)));
}

TEST_F(GemmRefusals, OfABThatWasPackedForAnother) {
  GemmCase x({4, 5, 6}), other({4, 5, 7});
  const HeldGemm gemm = x.plan(context_), of_other = other.plan(context_);
  const HeldPacked packed = other.packed(of_other);
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, x.run(gemm, 1, 0, packed), {"packed for a different"}));
  GemmCase rows({40, 5, 6});
  const HeldGemm of_rows = rows.plan(context_);
  const HeldPacked fits = rows.packed(of_rows);
  EXPECT_TRUE(works(x.run(gemm, 1, 0, fits))) << "packing does not depend on m";
}

TEST(GemmInUse, ASecondCallIsBusyOnThePlanAndOnWhatItPacked) {
  Inside inside;
  const auto context = hold<HeldContext>(st_context_create, inside.options());
  GemmCase x({200, 200, 200}), y({200, 200, 200});
  const HeldGemm gemm = x.plan(context), other = x.plan(context);
  const HeldPacked packed = x.packed(gemm);
  const st_view b = x.b.view();
  bool asked = false;
  inside.then(0, [&] {
    asked = true;
    auto info = filled(st_gemm_info_init);
    EXPECT_TRUE(fails(ST_BUSY, y.run(gemm, 1, 0), {"gemm", "another call"}));
    EXPECT_TRUE(fails(ST_BUSY, st_gemm_plan_info(gemm, &info), {"gemm"}));
    EXPECT_TRUE(fails(ST_BUSY, st_gemm_repack(packed, &b), {"packed"}));
    EXPECT_TRUE(fails(ST_BUSY, y.run(other, 1, 0, packed), {"packed"}));
    EXPECT_TRUE(fails(ST_BUSY, st_gemm_plan_destroy(gemm), {"gemm"}));
    EXPECT_TRUE(fails(ST_BUSY, st_packed_destroy(packed), {"packed"}));
  });
  ASSERT_TRUE(works(x.run(gemm, 1, 0, packed)));
  EXPECT_TRUE(asked) << "the host was never asked for threads";
  inside.then(-1, {});
  ASSERT_TRUE(works(y.run(gemm, 1, 0)));
  EXPECT_EQ(x.c.bytes(), y.c.bytes());
}

}  // namespace
