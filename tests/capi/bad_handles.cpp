// Every function with every wrong handle: NULL, destroyed, of another kind, not from this library. The call changes nothing.
#include <algorithm>
#include <optional>

#include "handle_calls.h"
#include "sanitized.h"

namespace {

using namespace st::test;

void* of_bits(uint64_t bits) { return reinterpret_cast<void*>(bits); }

EachHandle destroyed_handles() { return AllKinds().handles(); }

testing::AssertionResult is_refused(const HandleCall& row, AllKinds& w, void* handle, std::string_view why) {
  const st_status status = row.call(w, AnyHandle(handle));
  if (!row.has_message() && status == ST_INVALID_HANDLE) return testing::AssertionSuccess();
  const std::string kind = std::string(row.kind) + ":";
  const auto result = fails(ST_INVALID_HANDLE, status, {row.function, kind, why, "pass a handle"});
  return result ? result : testing::AssertionFailure() << row.function << " (" << row.argument << "): " << result.message();
}

/// Checks that every row refuses `handle_of(kind's index)` and changes nothing.
template <class HandleOf>
void expect_all_refused(AllKinds& w, std::string_view why, const HandleOf& handle_of) {
  const std::string before = w.state();
  for (const HandleCall& row : handle_calls()) {
    const auto kind = static_cast<size_t>(std::ranges::find(kKindNames, row.kind) - kKindNames.begin());
    for (void* handle : handle_of(kind))
      if (handle != nullptr || !row.may_be_null()) {
        EXPECT_TRUE(is_refused(row, w, handle, why));
      }
  }
  EXPECT_EQ(w.state(), before);
}

using Some = std::vector<void*>;

TEST(BadHandles, NoneIsRefused) {
  AllKinds w;
  expect_all_refused(w, "NULL", [](size_t) { return Some{nullptr}; });
  for (const HandleCall& row : handle_calls())
    if (row.is_destroy()) {
      EXPECT_TRUE(works(row.call(w, AnyHandle(nullptr)))) << row.function;
    }
}

TEST(BadHandles, OnesThatWereDestroyedAreRefused) {
  const EachHandle stale = destroyed_handles();
  AllKinds w;  // occupies the slots of the destroyed handles
  const EachHandle free = destroyed_handles();
  for (size_t kind = 0; kind < kKindNames.size(); ++kind) EXPECT_NE(stale[kind], w.handles()[kind]);
  expect_all_refused(w, "destroyed", [&](size_t kind) { return Some{stale[kind], free[kind]}; });
}

TEST(BadHandles, OnesOfAnotherKindAreRefusedAndNamed) {
  AllKinds w;
  for (size_t other = 0; other < kKindNames.size(); other += st::kSanitized ? 4 : 1)
    expect_all_refused(w, "of kind " + std::string(kKindNames[other]),
                       [&](size_t kind) { return kind == other ? Some{} : Some{w.handles()[other]}; });
}

TEST(BadHandles, OnesThatWereNeverOursAreRefused) {
  AllKinds w;
  static int something_else = 0;
  expect_all_refused(w, "", [&](size_t kind) {
    const auto live = reinterpret_cast<uint64_t>(w.handles()[kind]);
    return Some{&something_else,
                of_bits(1),
                of_bits(kind + 1),  // a kind without a slot
                of_bits(0x107),
                of_bits(0x0000000100000101),
                of_bits(live ^ (uint64_t{1} << 40)),  // another generation
                of_bits(live | 0xFFFFFF00),           // a slot that does not exist
                of_bits(0x8000000000000006),
                of_bits(0xFFFFFFFFFFFFFFFF)};
  });
}

// Otherwise the table's calls would be refused for another reason. Calls share the objects until one is refused, because an earlier call
// changed them: that call must work on new ones.
TEST(BadHandles, WithTheRightOneEachCallWorks) {
  std::optional<AllKinds> shared(std::in_place);
  int rows = 0;
  for (const HandleCall& row : handle_calls()) {
    if (st::kSanitized && rows++ % 8 != 0) continue;
    SCOPED_TRACE(row.function);
    if (row.call(*shared, shared->of(row.kind)) == ST_OK) continue;
    AllKinds& w = shared.emplace();
    const std::string_view name(row.function);
    if (name == "st_trainer_backward" || name == "st_trainer_apply") {
      ASSERT_TRUE(works(st_trainer_forward(w.run.trainer, 2, w.batch.views(), &w.number, &w.outputs)));
    }
    if (name == "st_trainer_apply") {
      ASSERT_TRUE(works(st_trainer_backward(w.run.trainer, 0, nullptr)));
    }
    EXPECT_TRUE(works(row.call(w, w.of(row.kind))));
  }
}

}  // namespace
