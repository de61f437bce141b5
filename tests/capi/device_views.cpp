// Every function that takes a view, with views of a device that the context has not: it is refused by name, and nothing changes.
#include <algorithm>
#include <fstream>
#include <set>

#include "handle_calls.h"

namespace {

using namespace st::test;

/// The functions that the ABI's outline declares with a view to be read or written.
std::set<std::string> takers_of_views() {
  std::set<std::string> all;
  std::ifstream outline(ST_ABI);
  std::string line, call;
  while (std::getline(outline, line)) {
    call = line.starts_with(' ') ? call + line : line;  // a long prototype goes on in the next line
    const size_t open = call.find('(');
    if (!call.starts_with("st_status st_") || open == std::string::npos) continue;
    for (const char* const type : {"const st_view*", "const st_named_view*"})
      for (size_t at = call.find(type); at != std::string::npos; at = call.find(type, at + 1))
        if (call[at + std::string_view(type).size()] != '*') all.insert(call.substr(10, open - 10));
  }
  return all;
}

/// Their rows in the table pass no view. The first three: wrong_views.cpp.
const std::set<std::string> kPassNone = {"st_trainer_step", "st_trainer_advance", "st_trainer_backward", "st_optimizer_keep_copies",
                                         "st_sharded_optimizer_keep_copies"};

TEST(DeviceViews, AreRefusedByEveryCall) {
  AllKinds w;
  const std::string before = w.state();
  for (const int32_t device : {1, -1, INT32_MAX}) {
    std::set<std::string> left = takers_of_views();
    ASSERT_GT(left.size(), 35U) << "the outline has been read";
    w.place_views(device);
    const std::string value = "has device " + std::to_string(device);
    for (const HandleCall& row : handle_calls()) {
      if (kPassNone.contains(row.function) || !takers_of_views().contains(row.function)) continue;
      EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, row.call(w, w.of(row.kind)), {value, "allowed is 0", "copy it to the host first"}))
          << row.function << " (" << row.argument << ")";
      left.erase(row.function);
    }
    for (const std::string& name : kPassNone) left.erase(name);
    left.erase("st_view_convert");  // of no handle: below
    EXPECT_TRUE(left.empty()) << *left.begin() << " takes a view and has no row in handle_calls.cpp";
  }
  w.place_views(0);
  EXPECT_EQ(w.state(), before);
}

TEST(DeviceViews, AreRefusedAsCopiesAndByAConversion) {
  AllKinds w;
  w.place_views(1);
  for (const auto status : {st_optimizer_keep_copies(w.optimizer, 1, &w.room), st_sharded_optimizer_keep_copies(w.sharded, 1, &w.room)})
    EXPECT_EQ(status, ST_INVALID_ARGUMENT);
  const st_view host = {ST_F32, 1, w.beta_dims, nullptr, w.beta.data(), 64};
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_view_convert(&w.room, &host), {"st_view_convert", "\"from\" has device 1"}));
  EXPECT_TRUE(fails(ST_INVALID_ARGUMENT, st_view_convert(&host, &w.room), {"st_view_convert", "\"to\" has device 1"}));
}

TEST(DeviceViews, AreNeverGivenByTheLibraryOnTheCpu) {
  AllKinds w;
  w.new_view.device = w.new_view.reserved = 7;
  EXPECT_TRUE(works(st_tensor_view(w.tensor, &w.new_view)));
  EXPECT_EQ(w.new_view.device, 0);
  EXPECT_EQ(w.new_view.reserved, 0);
  const auto expect_host = [&](st_status status) {
    ASSERT_TRUE(works(status));
    ASSERT_GT(w.number, 0);
    for (int64_t i = 0; i < w.number; ++i) {
      EXPECT_EQ(w.outputs[i].view.device, 0) << w.outputs[i].name;
      EXPECT_EQ(w.outputs[i].view.reserved, 0) << w.outputs[i].name;
    }
  };
  expect_host(st_optimizer_state_views(w.optimizer, &w.number, &w.outputs));
  expect_host(st_accumulator_state_views(w.accumulator, &w.number, &w.outputs));
  expect_host(st_sharded_optimizer_gather_state(w.sharded, -1, &w.number, &w.outputs));
  expect_host(st_trainer_forward(w.run.trainer, 2, w.batch.views(), &w.number, &w.outputs));
}

}  // namespace
